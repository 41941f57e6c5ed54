/** A placeholder: the script of the page replaces it with the base address of the service. */
export const SAMPLE_ADDRESS = 'https://plants.example';

const CURL = `curl -i ${SAMPLE_ADDRESS}/plants \\
  -H "Authorization: Bearer $PLANT_STORE_TOKEN" \\
  -H 'Content-Type: application/json' \\
  -d '{"id": 9223372036854775807, "name": "Ficus lyrata"}'
`;

const TYPESCRIPT = `import { PlantStore } from 'plant-store-client';

const store = new PlantStore({ url: '${SAMPLE_ADDRESS}' });
const { revision, outcome } = await store.createPlant({
  id: 9223372036854775807n,
  name: 'Ficus lyrata',
});
`;

const PYTHON = `import json, os, urllib.request

plant = {"id": 9223372036854775807, "name": "Ficus lyrata"}
token = os.environ["PLANT_STORE_TOKEN"]
headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
url = "${SAMPLE_ADDRESS}/plants"
request = urllib.request.Request(url, json.dumps(plant).encode(), headers)
with urllib.request.urlopen(request) as response:
    print(response.headers["Plant-Id"], response.headers["Plant-Outcome"])
`;

/** Programs that send a plant with the largest id. Each note explains why its id is exact. */
export const CODE_SAMPLES = [
  { language: 'curl', note: 'curl sends the digits as you write them.', code: CURL },
  {
    language: 'TypeScript',
    note: 'The suffix n makes the id a bigint. A number is exact only up to 9007199254740991. The client retries automatically.',
    code: TYPESCRIPT,
  },
  {
    language: 'Python',
    note: 'An int of Python has no size limit, and the module json writes all its digits.',
    code: PYTHON,
  },
];
