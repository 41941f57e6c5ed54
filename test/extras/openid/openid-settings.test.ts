import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { join } from 'node:path';
import { test } from 'node:test';
import { serveCommand } from '../../../src/cli/serve.ts';
import { openid } from '../../../src/extras/openid/openid.ts';
import { commandProcess } from '../../harness/command-lines.ts';
import { listen } from '../../harness/loopback-server.ts';
import { AUDIENCE, makeKey, SCOPE, startProvider } from '../../harness/openid-provider.ts';
import { assertFailed, FREE_PORTS, startServe } from '../../harness/program.ts';
import { type RunningService, startTestService } from '../../harness/running-service.ts';
import { testFolder } from '../../harness/test-folder.ts';

const newDatabase = (): string => `sqlite:${join(testFolder(), 'plants.db')}`;

/** Starts a service in this process, with the provider that `serve` reads from these arguments. */
async function startWith(args: string[]): Promise<RunningService> {
  const command = serveCommand([openid]);
  assert.deepEqual(command.parseOptions(args).unknown, []);
  const open = openid.read!(command.opts(), {}, assert.fail);
  return await startTestService({ extras: [open!] });
}

async function statusOf(url: string, token: string): Promise<number> {
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
  return (await fetch(`${url}/plants`, { method: 'POST', headers, body: '{"id":1,"name":"A"}' })).status;
}

/** What a token has. A claim that is undefined is absent; without `typ`, the header has none. */
interface Shape {
  typ?: string;
  [claim: string]: unknown;
}

interface DocumentedProvider {
  /** A token as this provider makes it. */
  token: Shape;
  /** Differences of tokens that must be rejected. */
  rejected: Shape[];
}

const GITHUB_ID_TOKEN = 'JWT';
/** By their titles in docs/operate/openid.md, which has the settings. */
const PROVIDERS: Record<string, DocumentedProvider> = {
  Keycloak: {
    token: { typ: 'at+jwt', aud: [AUDIENCE, 'account'], azp: 'app', scope: `profile ${SCOPE}` },
    rejected: [{ scope: 'profile' }, { typ: 'JWT' }, { aud: 'account' }],
  },
  'Microsoft Entra': {
    token: { typ: 'JWT', aud: 'APPLICATION_ID', azp: 'app', roles: ['plants.write'], ver: '2.0' },
    rejected: [{ roles: undefined }, { roles: ['plants.read'] }, { typ: 'at+jwt' }],
  },
  Auth0: {
    token: {
      typ: 'at+jwt',
      aud: [AUDIENCE, 'https://TENANT.auth0.com/userinfo'],
      client_id: 'app',
      scope: 'openid profile',
      permissions: ['plants:read', SCOPE],
    },
    rejected: [
      { permissions: ['plants:read'] },
      { permissions: undefined },
      { iss: 'https://TENANT.auth0.com' },
    ],
  },
  Okta: {
    token: { aud: AUDIENCE, ver: 1, cid: 'app', uid: 'user', scp: ['openid', SCOPE] },
    // The second one is an ID token.
    rejected: [{ scp: ['openid'] }, { aud: 'app', scp: undefined, nonce: 'a' }, { typ: 'JWT' }],
  },
  'Amazon Cognito': {
    token: { aud: undefined, token_use: 'access', client_id: 'CLIENT', scope: 'plants/write', version: 2 },
    rejected: [
      { token_use: 'id', aud: 'CLIENT' },
      { aud: 'CLIENT' },
      { aud: [] },
      { aud: null },
      { token_use: 'id' },
      { client_id: 'other' },
      { scope: 'plants/read' },
      { typ: 'JWT' },
      { typ: 'logout+jwt' },
    ],
  },
  Kubernetes: {
    token: {
      aud: [AUDIENCE],
      sub: 'system:serviceaccount:garden:importer',
      'kubernetes.io': { namespace: 'garden', serviceaccount: { name: 'importer', uid: 'u' } },
    },
    rejected: [
      { sub: 'system:serviceaccount:garden:importer2' },
      { sub: 'system:serviceaccount:evil:importer' },
      { aud: ['https://kubernetes.default.svc.cluster.local'] },
    ],
  },
  'GitHub Actions': {
    token: {
      typ: GITHUB_ID_TOKEN,
      aud: AUDIENCE,
      sub: 'repo:acme/plants:ref:refs/heads/main',
      repository: 'acme/plants',
      repository_owner: 'acme',
      repository_owner_id: '65',
      ref: 'refs/heads/main',
    },
    rejected: [
      { sub: 'repo:stranger/evil:ref:refs/heads/main', repository: 'stranger/evil' },
      { repository_owner_id: '66' },
      { ref: 'refs/heads/main2' },
      { aud: 'https://github.com/acme' },
    ],
  },
};

const page = readFileSync(new URL('../../../docs/operate/openid.md', import.meta.url), 'utf8');

/** The arguments of the command `serve` below a title. */
function documentedArgs(title: string): string[] {
  const [, section = ''] = page.split(`\n## ${title}\n`);
  const [, command] = /```sh\nnpx plant-store serve (.*?)\n```/s.exec(section.split('\n## ')[0]!) ?? [];
  return command!.replaceAll('\\\n', ' ').split(/ +/);
}

for (const [title, { token, rejected }] of Object.entries(PROVIDERS))
  test(`the documented settings accept tokens as ${title} makes them, and no others`, async () => {
    await using provider = await startProvider();
    provider.keys = [await makeKey('first', 'RS256')];
    const args = documentedArgs(title);
    const iss = args[args.indexOf('--oidc-issuer') + 1];
    await using service = await startWith([...args, '--oidc-jwks', `${provider.url}/keys`]);
    const send = async (shape: Shape): Promise<number> => {
      const { typ, ...claims } = { scope: undefined, iss, ...token, ...shape };
      return await statusOf(service.url, await provider.token(claims, { typ }));
    };
    assert.equal(await send({}), 200);
    for (const shape of rejected) assert.equal(await send(shape), 401, JSON.stringify(shape));
    assert.equal(await send({}), 200);
  });

interface ClaimCase {
  claims: string[];
  accepted: object[];
  rejected: object[];
}

const CLAIMS: ClaimCase[] = [
  {
    claims: ['repository=acme/plants'],
    accepted: [{ repository: 'acme/plants' }, { repository: ['a', 'acme/plants'] }],
    rejected: [
      {},
      { repository: 'acme/plants2' },
      { repository: 'ACME/plants' },
      { repository: ' acme/plants' },
      { Repository: 'acme/plants' },
      { repository: null },
      { repository: [] },
      { repository: [['acme/plants']] },
      { repository: [{ name: 'acme/plants' }] },
      { repository: { 'acme/plants': true } },
    ],
  },
  {
    claims: ['repository=acme/*'],
    accepted: [{ repository: 'acme/plants' }, { repository: ['a', 'acme/'] }],
    rejected: [
      { repository: 'acme' },
      { repository: 'acme-evil/plants' },
      { repository: 'evil/acme/plants' },
      { repository: { 'acme/plants': 1 } },
      { repository: 1 },
    ],
  },
  {
    claims: ['realm_access.roles=plants'],
    accepted: [{ realm_access: { roles: ['a', 'plants'] } }, { 'realm_access.roles': 'plants' }],
    rejected: [
      { realm_access: { roles: ['plants2'] } },
      { realm_access: { roles: { plants: true } } },
      { realm_access: [{ roles: 'plants' }] },
      { realm_access: 'roles=plants' },
      // Who may add a claim of any name gets no role by that.
      { 'realm_access.roles': 'plants', realm_access: { roles: ['a'] } },
    ],
  },
  {
    claims: ['https://login.example/a.b=plants'],
    accepted: [{ 'https://login.example/a.b': ['plants'] }],
    rejected: [{ 'https://login': 'plants' }],
  },
  {
    claims: ['kubernetes.io.serviceaccount.name=importer'],
    accepted: [{ 'kubernetes.io': { serviceaccount: { name: 'importer' } } }],
    rejected: [{ kubernetes: { io: 'importer' } }],
  },
  {
    claims: ['email_verified=true'],
    accepted: [{ email_verified: true }, { email_verified: 'true' }],
    rejected: [{ email_verified: false }, { email_verified: 1 }, { email_verified: {} }],
  },
  {
    claims: ['owner=9007199254740992'],
    accepted: [{ owner: '9007199254740992' }],
    // In JSON, it may have been ...993.
    rejected: [{ owner: 9007199254740992 }],
  },
  { claims: ['owner=65'], accepted: [{ owner: 65 }], rejected: [{ owner: 65.5 }, { owner: -65 }] },
  { claims: ['constructor.name=Object'], accepted: [], rejected: [{}, { constructor: {} }] },
  { claims: ['__proto__.a=b'], accepted: [{ ['__proto__']: { a: 'b' } }], rejected: [{}] },
  { claims: ['sub.length=5'], accepted: [], rejected: [{}] },
  {
    claims: ['a=1', 'b=2'],
    accepted: [{ a: '1', b: '2' }],
    rejected: [{ a: '1' }, { b: '2' }, { a: '1', b: '1' }],
  },
];

/** Flags for the provider of a test. */
function flagsFor(url: string, claims: string[]): string[] {
  const flags = ['--oidc-issuer', url, '--oidc-audience', AUDIENCE];
  return [...flags, ...claims.flatMap(claim => ['--oidc-claim', claim])];
}

for (const [index, { claims, accepted, rejected }] of CLAIMS.entries())
  test(`a token must have the claim ${claims.join(' and ')}`, async () => {
    await using provider = await startProvider();
    const isInEnvironment = index === CLAIMS.length - 1;
    const env = { PLANT_STORE_OIDC_CLAIM: `${claims.join('\n')}\n` };
    await using service = isInEnvironment
      ? await startServe(newDatabase(), flagsFor(provider.url, []), { env })
      : await startWith(flagsFor(provider.url, claims));
    for (const [expected, cases] of [
      [200, accepted],
      [401, rejected],
    ] as const)
      for (const each of cases)
        assert.equal(await statusOf(service.url, await provider.token(each)), expected, JSON.stringify(each));
  });

test('with --oidc-claim any, every token of the provider for the audience is accepted', async () => {
  await using provider = await startProvider();
  await using service = await startWith(flagsFor(provider.url, ['any']));
  assert.equal(await statusOf(service.url, await provider.token({ scope: undefined })), 200);
  assert.equal(await statusOf(service.url, await provider.token({ aud: 'a' })), 401);
});

test('keys of a provider with a private authority are read with NODE_EXTRA_CA_CERTS', async () => {
  const file = (name: string) => new URL(`../../harness/postgres-tls/${name}.pem`, import.meta.url);
  const key = await makeKey('first');
  const server = createServer(
    { cert: readFileSync(file('server')), key: readFileSync(file('server-key')) },
    (request, response) => {
      // Kubernetes does not send its keys as another type.
      if (!request.headers.accept?.includes('application/jwk-set+json')) response.statusCode = 406;
      response.end(JSON.stringify({ keys: [key.publicJwk] }));
    },
  );
  await using address = await listen(server);
  await using provider = await startProvider();
  const args = [...flagsFor(provider.url, ['any']), '--oidc-jwks', `https://localhost:${address.port}/keys`];
  for (const [env, status, logged] of [
    [{}, 503, /cannot be read.*unable to verify|unable to verify.*cannot be read/],
    [{ NODE_EXTRA_CA_CERTS: file('ca').pathname }, 200, /^/],
  ] as const) {
    await using serve = await startServe(newDatabase(), args, { env });
    assert.equal(await statusOf(serve.url, await provider.token({}, {}, key)), status);
    assert.match((await serve.stop('SIGTERM')).stdout, logged);
  }
});

const ISSUER = 'https://login.example';
const COMPLETE = ['--oidc-issuer', ISSUER, '--oidc-audience', 'a'];
const WRONG_SETTINGS: [args: string[], says: RegExp][] = [
  [['--oidc-issuer', ISSUER], /need both --oidc-issuer and --oidc-audience/],
  [['--oidc-audience', 'a'], /need both/],
  [['--oidc-claim', 'a=b'], /need both/],
  [['--oidc-issuer', 'http://login.example'], /https address without/],
  [['--oidc-issuer', `${ISSUER}/?x`], /without \? or #/],
  [['--oidc-scope', 'a b'], /one scope/],
  [['--oidc-jwks', 'http://a.example/k'], /https address/],
  [COMPLETE, /tokens for any audience for anybody, so add --oidc-scope, or --oidc-claim/],
  [
    ['--oidc-issuer', ISSUER, '--oidc-audience', 'none', '--oidc-scope', 'a'],
    /so add --oidc-claim NAME=VALUE/,
  ],
  [
    ['--oidc-issuer', ISSUER, '--oidc-audience', 'none', '--oidc-claim', 'any'],
    /so add --oidc-claim NAME=VALUE/,
  ],
  ...['token_use=access', 'typ=Bearer', 'auth_time=1', 'ver=2.0'].flatMap(claim =>
    ['a', 'none'].map((audience): [string[], RegExp] => [
      ['--oidc-issuer', ISSUER, '--oidc-audience', audience, '--oidc-claim', claim],
      /so add .*--oidc-claim NAME=VALUE/,
    ]),
  ),
  [[...COMPLETE, '--oidc-claim', 'any', '--oidc-claim', 'a=b'], /any stands alone/],
  [[...COMPLETE, '--oidc-claim', 'any', '--oidc-scope', 'a'], /any stands alone/],
  ...['', '\n', 'a', 'a=', '=b', ' a=b', 'a =b', 'a= b', 'a=b\r', 'a=b\nc'].map(
    (claim): [string[], RegExp] => [[...COMPLETE, '--oidc-claim', claim], /Write NAME=VALUE/],
  ),
  [[...COMPLETE, '--oidc-claim', 'sub=*'], /every token would match/],
  [[...COMPLETE, '--oidc-claim', 'sub=**'], /only at the end/],
  [[...COMPLETE, '--oidc-claim', 'sub=repo:*:ref'], /only at the end/],
  [[...COMPLETE, '--oidc-claim', `iss=${ISSUER}`], /another claim than iss/],
  [[...COMPLETE, '--oidc-claim', 'aud=a'], /another claim than aud/],
  [[...COMPLETE, '--oidc-scope', 'a', '--oidc-type', 'jwt'], /Allowed choices are at\+jwt, JWT, none/],
];

test('serve rejects settings of a provider that are incomplete, unprotected or open to strangers', async () => {
  const commands = commandProcess();
  for (const [args, says] of WRONG_SETTINGS)
    assertFailed(
      await commands.run({ args: ['serve', '--database', newDatabase(), ...FREE_PORTS, ...args] }),
      says,
      2,
    );
});
