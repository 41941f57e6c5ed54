import { HTTP_RULES } from './http-rules.ts';
import { INTERFACE_RULES } from './interface-rules.ts';
import type { Rule } from './rule.ts';

/** The rules for any server that claims to be a plant store. */
export const RULES_FOR_EVERY_STORE: readonly Rule[] = [...INTERFACE_RULES, ...HTTP_RULES];
