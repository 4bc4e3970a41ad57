/** Duration of a step without all listed findings. */

import { inUnit, timeUnit } from './units';
import { rangeText } from './words';

interface Saving { expected_ns: number; low_ns: number; high_ns: number }

export interface JointLike {
  step_ns?: number | null;
  true_step_ns?: number | null;
  ledger?: { step_ns: { median: number; mean: number } } | null;
  joint_saving?: Saving | null;
  findings: readonly { saving: { expected_ns: number } | null }[];
}

type StepLike = Pick<JointLike, 'step_ns' | 'true_step_ns' | 'ledger' | 'joint_saving'>;

/**
 * The step that savings refer to: that of the account, unless the step without the profiler is known.
 *
 * It is the median step; where more is saved than that, because few long steps hold most of the time, the average one.
 */
export function stepNow({ step_ns: step = null, true_step_ns: trueStep = null, ledger = null, joint_saving: saving = null }: StepLike): number | null {
  if (trueStep !== null || !ledger) return step;
  const { median, mean } = ledger.step_ns;
  return saving && saving.expected_ns > median ? Math.max(median, mean) : median;
}

/** `With all findings fixed a step would take 121 ms (112–139).` */
export function withoutText(report: JointLike, per: 'step' | 'trace'): string {
  const { joint_saving: saving } = report;
  const now = stepNow(report);
  if (!saving || saving.expected_ns <= 0 || now === null) return '';
  const left = (saved: number): number => Math.max(0, now - saved);
  const unit = timeUnit(now);
  const range = rangeText({ low_ns: left(saving.high_ns), high_ns: left(saving.low_ns) }, unit);
  const text = `${inUnit(left(saving.expected_ns), unit)} ${unit.name}${range && ` (${range})`}`;
  return `With all findings fixed ${per === 'step' ? 'a step' : 'the recording'} would take ${text}.`;
}

const OVERLAP = 1.01; // a sum that differs only by rounding is not mentioned

/** Findings that share time save less together than one by one. */
export function overlapText({ joint_saving: saving, findings }: JointLike): string {
  const sum = findings.reduce((total, finding) => total + (finding.saving?.expected_ns ?? 0), 0);
  return saving && sum > saving.expected_ns * OVERLAP ? 'Some findings share time, so this is less than their sum.' : '';
}
