/**
 * The extras of the program. Each line makes the options of one available, which load the rest of it
 * if it is on.
 * Without its line and its folder, the program lacks the extra and its options.
 */
export { openid } from './extras/openid/openid.ts';
export { sandbox } from './extras/sandbox/sandbox.ts';
export { traces } from './extras/traces/traces.ts';
