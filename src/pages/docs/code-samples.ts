import { type Html, html } from './html.ts';

/** A part whose text the script of the page replaces by the plant of the form or by an address. */
function part(name: string, byDefault: string): Html {
  return html`<span data-part="${name}">${byDefault}</span>`;
}

const BODY = '{"id": 9007199254740993, "name": "Monstera deliciosa", "tag": "houseplant"}';
const LITERAL = '{ id: 9007199254740993n, name: "Monstera deliciosa", tag: "houseplant" }';

interface CodeSamples {
  /** The address of `POST /plants`. */
  plantsAddress: Html;
  /** By the title of each. */
  samples: Record<string, Html>;
}

/** @param publicUrl the address in the samples; undefined: that of the page in the browser */
export function codeSamples(publicUrl?: string): CodeSamples {
  const base = publicUrl ?? 'https://plants.example';
  const { host, pathname } = new URL(`${base}/plants`);
  const shown = (name: string, text: string) => (publicUrl === undefined ? part(name, text) : html`${text}`);
  const address = shown('address', base);
  const plantsAddress = html`${address}/plants`;
  const samples = {
    HTTP: html`POST ${shown('path', pathname)}
Host: ${shown('host', host)}
Authorization: Bearer ${'<ACCESS_TOKEN>'}
Content-Type: application/json

${part('body', BODY)}`,
    curl: html`curl -i ${plantsAddress} \\
  -H "Authorization: Bearer $PLANT_STORE_TOKEN" \\
  -H 'Content-Type: application/json' \\
  --data-raw ${part('shell', `'${BODY}'`)}
`,
    TypeScript: html`import { PlantStore } from 'plant-store-client';

const store = new PlantStore({ url: '${address}' });
const plant = ${part('typescript', LITERAL)};
const { outcome, revision } = await store.createPlant(plant);
console.log(outcome, revision);
`,
    Python: html`import json, os, urllib.error, urllib.request

body = json.dumps(${part('body', BODY)})
token = os.environ["PLANT_STORE_TOKEN"]
headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
request = urllib.request.Request("${plantsAddress}", body.encode(), headers)
try:
    with urllib.request.urlopen(request) as response:
        print(response.headers["Plant-Id"], response.headers["Plant-Outcome"])
except urllib.error.HTTPError as error:
    raise SystemExit(f"{error.code}: {error.read().decode()}")
`,
  };
  return { plantsAddress, samples };
}
