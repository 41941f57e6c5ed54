/**
 * The extras of the program. Each line makes one available, whose modules are loaded if it is on.
 * Without its line and its folder, the program lacks the extra and its options.
 */
export { openid } from './extras/openid/openid.ts';
export { sandbox } from './extras/sandbox/sandbox.ts';
export { traces } from './extras/traces/traces.ts';
