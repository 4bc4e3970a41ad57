/** The pages of the rules. */

import { signal } from '@preact/signals';
import { getRules } from '../api/client';
import type { RuleInfo } from '../api/types.gen';
import { faultInfo, reach } from './connection';

export const rules = signal<ReadonlyMap<string, RuleInfo>>(new Map());

/** The list is readable without the pages, so a failure here is not reported separately. */
export async function loadRules(): Promise<void> {
  try {
    const answer = await reach(getRules({}));
    rules.value = new Map(answer.rules.map((rule) => [rule.rule, rule]));
  } catch (error) {
    faultInfo(error); // the next reload asks again
  }
}

export const ruleTitle = (rule: string): string => rules.value.get(rule)?.title ?? rule;
