/**
 * The settings on which our statements depend, since a role or a database may change their defaults
 * (https://www.postgresql.org/docs/current/runtime-config-client.html). A server may lack some.
 *
 * `search_path` is not set, because users select a schema with it. `client_encoding` is not set
 * here, because pg always sends it.
 */
const SESSION_SETTINGS = {
  // Our literals contain backslashes.
  standard_conforming_strings: 'on',
  // The schema is compared by names in the result of these functions, such as `format_type`.
  quote_all_identifiers: 'off',
  // The identity of a store contains a time.
  DateStyle: 'ISO',
  TimeZone: 'UTC',
  // Only a warning reports that a wait for a standby was cancelled.
  client_min_messages: 'warning',
  // At a stricter level, a statement that waited for a lock would not see later changes, such as a
  // new trigger.
  default_transaction_isolation: 'read committed',
  // A policy must cause an error, because it would silently hide rows from `export` and `verify`.
  row_security: 'off',
  // Only our own timeouts of statements and operations apply.
  lock_timeout: '0',
  idle_session_timeout: '0',
  idle_in_transaction_session_timeout: '0',
  transaction_timeout: '0',
  // No timeout of a statement ends a COPY that waits for its end, because the host of its client has
  // vanished. Until the connection ends, other instances wait for the ids that it has written.
  tcp_keepalives_idle: '5',
  tcp_keepalives_interval: '1',
  tcp_keepalives_count: '5',
};

/** The statement that sets them on a connection. */
export const SET_SESSION = `SELECT set_config(ours.name, ours.value, false) FROM pg_settings
  JOIN (VALUES ${Object.entries(SESSION_SETTINGS)
    .map(([name, value]) => `('${name}', '${value}')`)
    .join(', ')}) AS ours (name, value) ON lower(ours.name) = lower(pg_settings.name)`;
