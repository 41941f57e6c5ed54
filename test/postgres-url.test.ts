import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { databaseAddressOf, shownDatabase } from '../src/store/database-url.ts';
import { StoreRefused } from '../src/store/plant-store.ts';
import { type PostgresAddress, postgresAddressOf, TLS_MODES } from '../src/store/postgres/postgres-url.ts';
import { SEED } from './harness/seeded-random.ts';

const DEFAULTS: PostgresAddress = {
  hosts: [{ host: 'h', port: 5432 }],
  database: 'd',
  user: 'u',
  password: undefined,
  tlsMode: 'prefer',
  rootCertificateFile: undefined,
  certificateFile: undefined,
  keyFile: undefined,
  applicationName: 'plant-store',
  connectWaitMs: undefined,
  options: undefined,
};

suite('the address of a PostgreSQL store', () => {
  const FORMS: [text: string, differs: Partial<PostgresAddress>][] = [
    ['postgres://u@h/d', {}],
    ['postgresql://u@h/d', {}],
    ['postgres://u:secret@h:6543/d', { password: 'secret', hosts: [{ host: 'h', port: 6543 }] }],
    ['postgres://u:@h/d', {}],
    ['postgres://u:a:b@h/d', { password: 'a:b' }],
    ['postgres://u:a@b@h/d', { password: 'a@b' }],
    ['postgres://u:a#b@h/d', { password: 'a#b' }],
    ['postgres://u%40x:%2F%3f%23%25%C3%A9@h/d%20d', { user: 'u@x', password: '/?#%é', database: 'd d' }],
    [
      'postgres://u@h1,h2:6543/d',
      {
        hosts: [
          { host: 'h1', port: 5432 },
          { host: 'h2', port: 6543 },
        ],
      },
    ],
    ['postgres://u@127.0.0.1:1/d', { hosts: [{ host: '127.0.0.1', port: 1 }] }],
    [
      'postgres://u@[::1]:65535,[fe80::1]/d',
      {
        hosts: [
          { host: '::1', port: 65_535 },
          { host: 'fe80::1', port: 5432 },
        ],
      },
    ],
    ['postgres://u@%2Fvar%2Frun%2Fpostgresql/d', { hosts: [{ host: '/var/run/postgresql', port: 5432 }] }],
    ['postgres://u@/d?host=/tmp', { hosts: [{ host: '/tmp', port: 5432 }] }],
    [
      'postgres:///d?host=/tmp,h:7&user=u',
      {
        hosts: [
          { host: '/tmp', port: 5432 },
          { host: 'h', port: 7 },
        ],
      },
    ],
    ['postgres://u@/d', { hosts: [{ host: 'localhost', port: 5432 }] }],
    ['postgres://?host=h&dbname=d&user=u&password=a%26b', { password: 'a&b' }],
    ['postgres://h?dbname=d&user=u%40x&password=', { user: 'u@x' }],
    ['postgres://h/d?user=u&password=&password=later', { password: 'later' }],
    ['postgres://u:first@h/d?password=second', { password: 'first' }],
    ['postgres://u:@h/d?password=only', { password: 'only' }],
    ['postgres://u@h/d?', {}],
    ['postgres://u@/d?host=/run/postgresql&port=5433', { hosts: [{ host: '/run/postgresql', port: 5433 }] }],
    [
      'postgres://u@h1,h2:1/d?port=5433',
      {
        hosts: [
          { host: 'h1', port: 5433 },
          { host: 'h2', port: 1 },
        ],
      },
    ],
    ['postgres://u@h/d?connect_timeout=3', { connectWaitMs: 3_000 }],
    ['postgres://u@h/d?application_name=my%20plants', { applicationName: 'my plants' }],
    ['postgres://u@h/d?options=-c%20search_path%3Dplants', { options: '-c search_path=plants' }],
    ['postgres://u@h/d?target_session_attrs=read-write', {}],
    ['postgres://u@h/d?sslcert=/c.pem&sslkey=/k.pem', { certificateFile: '/c.pem', keyFile: '/k.pem' }],
    ...TLS_MODES.map((tlsMode): [string, Partial<PostgresAddress>] => [
      `postgres://u@h/d?sslmode=${tlsMode}&sslrootcert=%2Fca.pem`,
      { tlsMode, rootCertificateFile: '/ca.pem' },
    ]),
    ['postgres://u@h/d?sslrootcert=system', { tlsMode: 'verify-full', rootCertificateFile: 'system' }],
    [
      'postgres://u@h/d?sslmode=verify-full&sslrootcert=system',
      { tlsMode: 'verify-full', rootCertificateFile: 'system' },
    ],
  ];
  for (const [text, differs] of FORMS) {
    test(text, () => assert.deepEqual(postgresAddressOf(text), { ...DEFAULTS, ...differs }));
  }

  const HOST_ADVICE = /names a host that is none; write HOST:PORT,HOST:PORT, and a \/ .* as %2F$/;
  const FORM_ADVICE = /is not postgres:\/\/USER@HOST:PORT\/DATABASE; write @, .* as %40, %2F, %3F and %25$/;
  const REFUSED: [text: string, says: RegExp][] = [
    ['postgres://u@h', /names no database; write postgres:\/\/USER@HOST:PORT\/DATABASE$/],
    ['postgres://u@h/', /names no database/],
    ['postgres://h/d', /names no user; write postgres:\/\/USER@HOST:PORT\/DATABASE$/],
    ['postgres://:secret@h/d', /names no user/],
    ['postgres://', /names no database/],
    ['postgres://u@h:0/d', HOST_ADVICE],
    ['postgres://u@h:65536/d', HOST_ADVICE],
    ['postgres://u@h:-1/d', HOST_ADVICE],
    ['postgres://u@h:x/d', HOST_ADVICE],
    ['postgres://u@h:1:2/d', HOST_ADVICE],
    ['postgres://u@h:/d', HOST_ADVICE],
    ['postgres://u@::1/d', HOST_ADVICE],
    ['postgres://u@[h]/d', HOST_ADVICE],
    ['postgres://u@h1,,h2/d', HOST_ADVICE],
    ['postgres://u@h/d/e', FORM_ADVICE],
    ['postgres://u:se/cret@h/d', FORM_ADVICE],
    ['postgres://u:12/cret@h', FORM_ADVICE],
    ['postgres://u:se?cret@h/d', FORM_ADVICE],
    ['postgres://u@h/d?user=a@b', FORM_ADVICE],
    ['postgres://u@x:secret@h/d', /has an @ in the user; write it as %40$/],
    [
      'postgres://u:50%@h/d',
      /has a % in the password that is not followed by two hexadecimal digits .* as %25$/,
    ],
    ['postgres://u:%ff@h/d', /has a % in the password/],
    ['postgres://u@h/%zz', /has a % in the database/],
    [
      'postgres://u@h/d?sslmod=require&user=u',
      /has an unknown parameter, number 1; known are host, port, user, password, /,
    ],
    [
      'postgres://u@h/d?sslmode=require&&ssl=true',
      /has an unknown parameter, number 2; known are .*sslmode, /,
    ],
    ['postgres://u@h/d?SSLMODE=require', /has an unknown parameter/],
    ['postgres://u@h/d?password=a&b', /has an unknown parameter, number 2; known are/],
    ['postgres://u@h/d?sslmode=require&sslmode=disable', /has the parameter sslmode twice$/],
    ['postgres://u@h/d?password=a&password=b', /has the parameter password twice$/],
    [
      'postgres://u@h/d?sslmode=',
      /has an unknown sslmode; known are disable, allow, prefer, require, verify-ca, verify-full$/,
    ],
    ['postgres://u@h/d?sslmode=no-verify', /has an unknown sslmode/],
    [
      'postgres://u@h/d?sslmode=verify-ca',
      /has sslmode=verify-ca without sslrootcert; name a file with it, or `system`$/,
    ],
    ['postgres://u@h/d?sslmode=verify-full', /has sslmode=verify-full without sslrootcert/],
    ...TLS_MODES.filter(mode => mode !== 'verify-full').map((mode): [string, RegExp] => [
      `postgres://u@h/d?sslrootcert=system&sslmode=${mode}`,
      /has sslrootcert=system with a weaker sslmode than verify-full; use that$/,
    ]),
    ['postgres://u@h/d?sslcert=/c.pem', /has one of sslcert and sslkey without the other$/],
    ['postgres://u@h/d?sslkey=/k.pem', /has one of sslcert and sslkey without the other$/],
    ...['any', 'primary', 'read-only', 'standby', 'prefer-standby', ''].map((value): [string, RegExp] => [
      `postgres://u@h/d?target_session_attrs=${value}`,
      /other target_session_attrs than read-write; a plant store needs a host that takes writes$/,
    ]),
    ...['', '0', '1000', '-1', '1.5', 'x'].map((value): [string, RegExp] => [
      `postgres://u@h/d?connect_timeout=${value}`,
      /has a connect_timeout that is no whole number of seconds from 1 to 999$/,
    ]),
  ];
  for (const [text, says] of REFUSED) {
    test(`refused: ${text}`, () => {
      assert.throws(
        () => postgresAddressOf(text),
        error => {
          assert.ok(error instanceof StoreRefused);
          assert.match(error.message, /^the postgres:\/\/ address of the store /);
          assert.match(error.message, says);
          assert.doesNotMatch(error.message, /\n/);
          return true;
        },
      );
    });
  }

  test('is shown without its password and parameters', () => {
    assert.equal(
      shownDatabase('postgresql://u:secret@h:1,[::1]/d?sslmode=require&application_name=x'),
      'postgres://u@h:1,[::1]:5432/d',
    );
  });
});

/** As people choose them, with all that means something in a URL. */
const password = fc.string({
  unit: fc.oneof(
    fc.constantFrom(...'@/?#%:&=+,[] \'"\\$.0123456789'),
    fc.constantFrom(...'QWXZqwxzéßЖ語🌱'),
    fc.string({ unit: 'grapheme', minLength: 1, maxLength: 1 }).filter(text => text.isWellFormed()),
  ),
  minLength: 1,
  maxLength: 20,
});

test(`any user and password survive the way through an encoded address, seed ${SEED}`, () => {
  fc.assert(
    fc.property(password, password, (user, password) => {
      const [u, p] = [encodeURIComponent(user), encodeURIComponent(password)];
      for (const text of [
        `postgres://${u}:${p}@h:1/d?sslmode=require`,
        `postgres://h:1/d?user=${u}&sslmode=require&password=${p}`,
      ]) {
        const address = postgresAddressOf(text);
        assert.deepEqual(address, {
          ...DEFAULTS,
          hosts: [{ host: 'h', port: 1 }],
          ...{ user, password, tlsMode: 'require' },
        });
      }
    }),
    { seed: SEED, numRuns: 2_000 },
  );
});

/**
 * What the address of a store is written as by hand, the password as it is and not encoded. What the messages
 * and addresses have of themselves, such as `host` or 5432, is no password here: none has four of its letters in a row.
 */
const writtenByHand: ((password: string) => string)[] = [
  password => `postgres://keeper:${password}@db.example:5432/plants`,
  password => `postgresql://keeper:${password}@db.example/plants?sslmode=require`,
  password => `postgres://keeper:${password}@db.example,db2.example:1/plants?sslmode=nonsense`,
  password => `postgres://keeper:${password}@db.example`,
  password => `postgres://keeper:${password}@db.example/plants?ssl=true`,
  password => `postgres://keeper:${password}@/plants?host=/tmp`,
  password => `postgres://keeper:${password}@[::1]:5432/plants`,
  password => `postgres://db.example/plants?user=keeper&password=${password}`,
  password => `postgres://db.example/plants?password=${password}&user=keeper`,
  password => `postgres://keeper:${password}@db.example/plants?password=${password}`,
  password => `POSTGRES://keeper:${password}@db.example/plants`,
  password => `postgres:/keeper:${password}@db.example/plants`,
  password => ` postgres://keeper:${password}@db.example/plants`,
  password => `postgres://:${password}@db.example/plants`,
  password => `postgres://keeper@x:${password}@db.example/plants`,
];

/** Four characters of the password in a row, a letter or digit among them, are told by nothing that is shown. */
function assertHidden(password: string, shown: string, text: string): void {
  for (const form of [password, encodeURIComponent(password)]) {
    for (let start = 0; start + 4 <= form.length; start++) {
      const piece = form.slice(start, start + 4);
      // Four of the signs that any address has, such as `@[::`, tell nothing.
      if (!/[QWXZqwxzЖ79]/.test(piece)) continue;
      assert.ok(!shown.includes(piece), `${JSON.stringify(piece)} of ${text} is told by: ${shown}`);
    }
  }
}

test(`nothing that is said of an address written wrong tells the password, seed ${SEED}`, () => {
  const letters = fc.constantFrom(...'QWXZqwxzЖ79');
  const traps = fc.constantFrom(...'@/?#%:&=+,[]');
  const typed = fc.string({
    unit: fc.oneof({ weight: 4, arbitrary: letters }, { weight: 1, arbitrary: traps }),
    minLength: 4,
    maxLength: 16,
  });
  const counts = { shown: 0, refused: 0 };
  fc.assert(
    fc.property(typed, fc.constantFrom(...writtenByHand), fc.nat(3), (password, write, cut) => {
      // Also with the end cut off, as by a shell that took a character for its own.
      const whole = write(password);
      const text = cut === 0 ? whole.slice(0, whole.lastIndexOf(password) + password.length) : whole;
      try {
        databaseAddressOf(text);
      } catch (error) {
        counts.refused++;
        assert.ok(error instanceof StoreRefused, String(error));
        const { message, cause } = error;
        // The advice how to write such characters is the messages' own.
        const said = message.replaceAll(/%(?:40|2F|3F|25|26|23)(?:, | and |$)/g, '');
        assertHidden(password, `${said} ${JSON.stringify(error)} ${JSON.stringify(cause) ?? ''}`, text);
        return;
      }
      // With the end cut off, what is left may be the address of a host of that name.
      if (cut === 0) return;
      counts.shown++;
      assertHidden(password, shownDatabase(text), text);
    }),
    { seed: SEED, numRuns: 20_000 },
  );
  // Both happened, and often.
  assert.ok(counts.shown > 1_000 && counts.refused > 1_000, JSON.stringify(counts));
});
