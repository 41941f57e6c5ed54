/** Stands for the base address of the service; the script of the page puts its own there. */
export const SAMPLE_ADDRESS = 'https://plants.example';

const CURL = `curl -i ${SAMPLE_ADDRESS}/plants \\
  -H "Authorization: Bearer $PLANT_STORE_TOKEN" \\
  -H 'Content-Type: application/json' \\
  -d '{"id": 9223372036854775807, "name": "Ficus lyrata"}'
`;

const TYPESCRIPT = `import { PlantStore } from 'plant-store/client';

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

/** Programs that send a plant with the largest id, each with a note on how the id keeps its digits there. */
export const CODE_SAMPLES = [
  { language: 'curl', note: 'The digits go out as they are written.', code: CURL },
  {
    language: 'TypeScript',
    note: 'The n makes the id a bigint: a number is exact only up to 9007199254740991. The client retries by itself.',
    code: TYPESCRIPT,
  },
  {
    language: 'Python',
    note: 'An int has as many digits as it needs, and json writes all of them.',
    code: PYTHON,
  },
];
