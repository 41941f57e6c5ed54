/** HTML in which all text is escaped. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type Insertion = Html | string | number | bigint | readonly (Html | string)[];

/** Writes HTML, such as html`<p title="${title}">${paragraph}</p>`. Inserted text is escaped. */
export function html(literals: TemplateStringsArray, ...insertions: Insertion[]): Html {
  return new Html(String.raw({ raw: literals }, ...insertions.map(textOf)));
}

function textOf(insertion: Insertion): string {
  if (insertion instanceof Html) return insertion.text;
  if (typeof insertion === 'object') return insertion.map(textOf).join('');
  return String(insertion).replace(/[&<>"]/g, character => `&#${character.charCodeAt(0)};`);
}

/** Writes a sentence. Text between backticks is code. */
export function sentence(text: string): Html {
  const parts = text
    .split('`')
    .map((part, index) => (index % 2 === 0 ? html`${part}` : html`<code>${part}</code>`));
  return html`${parts}`;
}
