/**
 * The extras of the program. A line makes one available, and its modules are loaded when it is on.
 * Without its line and its folder, the program lacks the extra and its options.
 */
export { openId } from './extras/openid/openid.ts';
export { sandbox } from './extras/sandbox/sandbox.ts';
export { traces } from './extras/traces/traces.ts';
