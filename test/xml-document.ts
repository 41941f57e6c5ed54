/** An element of an XML document, without name spaces. */
export interface XmlElement {
  name: string;
  attributes: Record<string, string>;
  /** What stands in the element itself, the text of elements within it left out. */
  text: string;
  children: XmlElement[];
}

// XML 1.0 (https://www.w3.org/TR/xml/), sections 2.2, 2.3, 3.1 and 4.6, as far as a document without a DTD goes.
const NOT_ALLOWED = /[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/u;
const TOKEN =
  /<(?<end>\/?)(?<name>[A-Za-z_][\w.-]*)(?<attributes>(?:\s+[A-Za-z_][\w.-]*="[^"<]*")*)\s*(?<empty>\/?)>|(?<text>[^<]+)/uy;
const ENTITIES: Record<string, string> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" };

/**
 * Reads a well-formed document.
 *
 * @throws at the first place that is not well-formed
 */
export function readXml(document: string): XmlElement {
  const illegal = NOT_ALLOWED.exec(document);
  if (illegal !== null) throw new Error(`no character of XML at ${illegal.index}`);
  const declaration = /^<\?xml version="1\.0" encoding="UTF-8"\?>\s*/.exec(document)?.[0];
  if (declaration === undefined) throw new Error('no XML declaration');
  const root: XmlElement = { name: '', attributes: {}, text: '', children: [] };
  const open = [root];
  TOKEN.lastIndex = declaration.length;
  while (TOKEN.lastIndex < document.length) {
    const at = TOKEN.lastIndex;
    const { name, end, empty, attributes, text } = TOKEN.exec(document)?.groups ?? {};
    const parent = open.at(-1)!;
    if (text !== undefined) {
      if (text.includes(']]>')) throw new Error(`]]> at ${at}`);
      parent.text += resolveEntities(text);
    } else if (name === undefined)
      throw new Error(`neither a tag nor text at ${at}: ${document.slice(at, at + 50)}`);
    else if (end) {
      if (open.length === 1 || parent.name !== name) throw new Error(`</${name}> ends nothing at ${at}`);
      open.pop();
    } else {
      const element: XmlElement = {
        name,
        attributes: readAttributes(attributes ?? ''),
        text: '',
        children: [],
      };
      parent.children.push(element);
      if (!empty) open.push(element);
    }
  }
  const [only, ...others] = root.children;
  if (open.length > 1) throw new Error(`<${open.at(-1)!.name}> has no end`);
  if (only === undefined || others.length > 0 || root.text.trim() !== '')
    throw new Error('not one root element');
  return only;
}

function readAttributes(text: string): Record<string, string> {
  const attributes: Record<string, string> = {};
  for (const [, name, value] of text.matchAll(/([\w.-]+)="([^"]*)"/g)) {
    if (Object.hasOwn(attributes, name!)) throw new Error(`${name} is given twice`);
    attributes[name!] = resolveEntities(value!);
  }
  return attributes;
}

function resolveEntities(text: string): string {
  return text.replace(/&(\w*)(;?)/g, (found, name: string, semicolon: string) => {
    const character = ENTITIES[name];
    if (character === undefined || semicolon === '') throw new Error(`no entity: ${found}`);
    return character;
  });
}
