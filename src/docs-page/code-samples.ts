import { type Html, html } from './html.ts';

/** A part that the script of the page replaces, to follow the form and the service address. */
function part(name: string, byDefault: string): Html {
  return html`<span data-part="${name}">${byDefault}</span>`;
}

const BODY = '{"id": 9007199254740993, "name": "Monstera deliciosa", "tag": "houseplant"}';
const LITERAL = '{ id: 9007199254740993n, name: "Monstera deliciosa", tag: "houseplant" }';
const ADDRESS = part('address', 'https://plants.example');
export const PLANTS_ADDRESS = html`${ADDRESS}/plants`;

/** The request that the form sends, and programs that send it. */
export const SAMPLES = {
  HTTP: html`POST ${part('path', '/plants')}
Host: ${part('host', 'plants.example')}
Authorization: Bearer ${'<ACCESS_TOKEN>'}
Content-Type: application/json

${part('body', BODY)}`,
  curl: html`curl -i ${PLANTS_ADDRESS} \\
  -H "Authorization: Bearer $PLANT_STORE_TOKEN" \\
  -H 'Content-Type: application/json' \\
  --data-raw ${part('shell', `'${BODY}'`)}
`,
  TypeScript: html`import { PlantStore } from 'plant-store-client';

const store = new PlantStore({ url: '${ADDRESS}' });
const plant = ${part('typescript', LITERAL)};
const { outcome, revision } = await store.createPlant(plant);
console.log(outcome, revision);
`,
  Python: html`import json, os, urllib.error, urllib.request

body = json.dumps(${part('body', BODY)})
token = os.environ["PLANT_STORE_TOKEN"]
headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
request = urllib.request.Request("${PLANTS_ADDRESS}", body.encode(), headers)
try:
    with urllib.request.urlopen(request) as response:
        print(response.headers["Plant-Id"], response.headers["Plant-Outcome"])
except urllib.error.HTTPError as error:
    raise SystemExit(f"{error.code}: {error.read().decode()}")
`,
};
