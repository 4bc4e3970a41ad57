import { expect, it } from 'vitest';
import { overlapText, stepNow, withoutText, type JointLike } from './joint';

const MS = 1_000_000;
const joint = (changes: Partial<JointLike> = {}): JointLike => ({
  step_ns: 184 * MS, findings: [{ saving: { expected_ns: 63 * MS } }],
  joint_saving: { expected_ns: 63 * MS, low_ns: 45 * MS, high_ns: 72 * MS }, ...changes,
});

it('takes the joint saving and its ends off the step', () => {
  expect(withoutText(joint(), 'step')).toBe('With all findings fixed a step would take 121 ms (112–139).');
  expect(withoutText(joint(), 'trace')).toContain('fixed the recording would take 121 ms');
});

it('takes it off the step that the report says', () => {
  const shown = joint({ step_ns: 100 * MS });
  expect(stepNow(shown)).toBe(100 * MS);
  expect(withoutText(shown, 'step')).toBe('With all findings fixed a step would take 37 ms (28–55).');
});

it('takes it off the step of the account, but for a step that is known without the profiler', () => {
  const account = { step_ns: { median: 100 * MS, mean: 110 * MS } };
  expect(stepNow(joint({ ledger: account }))).toBe(100 * MS);
  expect(withoutText(joint({ ledger: account }), 'step')).toContain('37 ms');
  expect(stepNow(joint({ ledger: account, true_step_ns: 184 * MS }))).toBe(184 * MS);
});

it('takes it off the average step where few long steps hold more than the median one', () => {
  const account = { step_ns: { median: 60 * MS, mean: 100 * MS } };
  expect(stepNow(joint({ ledger: account }))).toBe(100 * MS);
  expect(withoutText(joint({ ledger: account }), 'step')).toContain('37 ms');
  expect(stepNow(joint({ ledger: account, joint_saving: null }))).toBe(60 * MS);
});

it('never goes below zero', () => {
  expect(withoutText(joint({ step_ns: 50 * MS }), 'step')).toContain('0 ms (0–5)');
});

it('says nothing where nothing is saved or no step is known', () => {
  expect(withoutText(joint({ joint_saving: null }), 'step')).toBe('');
  expect(withoutText(joint({ joint_saving: { expected_ns: 0, low_ns: 0, high_ns: 0 } }), 'step')).toBe('');
  expect(withoutText(joint({ step_ns: null }), 'trace')).toBe('');
});

it('says that findings overlap where the sum is larger', () => {
  const two = [{ saving: { expected_ns: 40 * MS } }, { saving: { expected_ns: 40 * MS } }, { saving: null }];
  expect(overlapText(joint({ findings: two }))).toBe('Some findings share time, so this is less than their sum.');
  expect(overlapText(joint())).toBe('');
});
