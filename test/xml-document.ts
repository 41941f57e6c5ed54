/** An element of an XML document, without name spaces. */
export interface XmlElement {
  name: string;
  attributes: Record<string, string>;
  /** What stands in the element itself, the text of elements within it left out. */
  text: string;
  children: XmlElement[];
}

// XML 1.0 (https://www.w3.org/TR/xml/), sections 2.2, 2.3, 2.4 and 3.1, as far as a document without a DTD goes.
const NOT_ALLOWED =
  /[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]|&(?!(?:lt|gt|amp|quot);)|\]\]>/u;
const TOKEN = /<(\/?)([A-Za-z_][\w.-]*)((?:\s+[A-Za-z_][\w.-]*="[^"<]*")*)\s*(\/?)>|([^<]+)/y;

/**
 * Reads a well-formed document.
 *
 * @throws where it is not well-formed
 */
export function readXml(document: string): XmlElement {
  const illegal = NOT_ALLOWED.exec(document);
  if (illegal !== null) throw new Error(`not allowed at ${illegal.index}: ${JSON.stringify(illegal[0])}`);
  const declaration = '<?xml version="1.0" encoding="UTF-8"?>';
  if (!document.startsWith(declaration)) throw new Error('no XML declaration');
  const root: XmlElement = { name: '', attributes: {}, text: '', children: [] };
  const open = [root];
  for (TOKEN.lastIndex = declaration.length; TOKEN.lastIndex < document.length; ) {
    const at = TOKEN.lastIndex;
    const token = TOKEN.exec(document);
    if (token === null) throw new Error(`neither a tag nor text at ${at}: ${document.slice(at, at + 50)}`);
    const [, end, name, attributes, empty, text] = token;
    const parent = open.at(-1)!;
    if (text !== undefined) parent.text += resolve(text);
    else if (end) {
      if (parent.name !== name) throw new Error(`</${name}> ends nothing at ${at}`);
      open.pop();
    } else {
      const pairs = [...attributes!.matchAll(/([\w.-]+)="([^"]*)"/g)].map(([, key, value]) => [
        key,
        resolve(value!),
      ]);
      const element: XmlElement = {
        name: name!,
        attributes: Object.fromEntries(pairs),
        text: '',
        children: [],
      };
      if (Object.keys(element.attributes).length < pairs.length) throw new Error(`one twice: ${attributes}`);
      parent.children.push(element);
      if (!empty) open.push(element);
    }
  }
  const [only, ...others] = root.children;
  if (open.length > 1 || only === undefined || others.length > 0 || root.text.trim() !== '')
    throw new Error('not one root element that ends');
  return only;
}

const ENTITIES: Record<string, string> = { lt: '<', gt: '>', amp: '&', quot: '"' };

function resolve(text: string): string {
  return text.replace(/&(\w+);/g, (_, name: string) => ENTITIES[name]!);
}
