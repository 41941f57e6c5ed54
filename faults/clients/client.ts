/** Sends plants one after another with `fetch`, and prints the status of each response. */
const [url = '', token = '', firstId = '', count = '', mode = ''] = process.argv.slice(2);

const headers = new Headers({ Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' });
// Bun and Deno send the body without waiting for 100.
if (mode === 'expect') headers.set('Expect', '100-continue');
for (let id = Number(firstId); id < Number(firstId) + Number(count); id++) {
  const plant = JSON.stringify({ id, name: 'Monstera' });
  const body = mode === 'chunked' ? ReadableStream.from([Buffer.from(plant)]) : plant;
  const response = await fetch(url, { method: 'POST', headers, body, duplex: 'half' });
  await response.text();
  console.log(response.status);
  // In Node a connection is free only one event-loop iteration after its response. Without this,
  // the next request goes over a second connection, also to a server of node:http.
  await new Promise(resolve => setImmediate(resolve));
}
