/** The two sides: run, rank, span and steps of each. */

import { useEffect, useState } from 'preact/hooks';
import type { Comparison, ProfileReport, StepItem } from '../../api/types.gen';
import { ticks } from '../../base/axis';
import { accountOf, groupsOf, hostPace, stepsOf, type LedgerGroupSlice } from '../../base/ledger';
import { spanText } from '../../base/selection';
import type { Side, Sides } from '../../base/sides';
import { rangeFault, rangeIn, rangeText, type Range } from '../../base/stepRange';
import { columnsOf, longest, ODDITIES } from '../../base/stepStrip';
import { nanoseconds, plural } from '../../base/units';
import { Button, IconButton } from '../../components/Button';
import { Select } from '../../components/Select';
import { Message } from '../../components/Spans';
import { StepStrip } from '../../components/StepStrip';
import { changeSide, chooseSteps, profilesOf, swapSides, useReport, type SideName } from '../../state/compare';
import { runs } from '../../state/runs';

const TITLES: Record<SideName, string> = { base: 'Baseline', candidate: 'Candidate' };

export function Choose({ sides: { base, candidate }, compared }: { sides: Sides; compared: Comparison | null }) {
  const [before, after] = [useReport(base), useReport(candidate)];
  const most = Math.max(longest(shownSteps(before)), longest(shownSteps(after)));
  return (
    <div class="sides">
      <Card name="base" side={base} report={before} most={most} facts={factsOf(compared?.base)} />
      <span class="swap"><IconButton icon="swap" label="Swap baseline and candidate" onClick={swapSides} /></span>
      <Card name="candidate" side={candidate} report={after} most={most} facts={factsOf(compared?.candidate)} />
    </div>
  );
}

/** The steps as Overview shows them: the ledger's, if it has any of the marked ones. */
function shownSteps(report: ProfileReport | null): readonly StepItem[] {
  const items = report?.steps.items ?? [];
  const steps = stepsOf(report?.ledger.steps ?? [], items);
  return steps.some(({ name }) => items.some((item) => item.name === name)) ? steps : items;
}

function factsOf(side: Comparison['base'] | undefined): string {
  if (!side) return '';
  const pace = side.median_ns === null ? null : hostPace({ host_step_ns: side.host_median_ns ?? null, step_ns: { median: side.median_ns } });
  const host = pace === null ? '' : `; the host’s own mark takes ${nanoseconds(pace)}`;
  const warmUp = side.warming_up ? `, ${side.warming_up} of them warm-up` : '';
  const median = side.median_ns === null ? 'no steps' : `median ${nanoseconds(side.median_ns)} of ${plural(side.steps, 'step')}${warmUp}${host}`;
  return [median, ...pooled(side)].join(', ');
}

/** The runs, ranks and recordings whose steps count together; none for a single recording. */
function pooled({ runs: names, ranks = 1, profiles }: Comparison['base']): string[] {
  const several = [[names.length, 'runs'], [ranks, names.length > 1 ? 'ranks at most' : 'ranks'], [profiles, 'recordings']] as const;
  return several.filter(([number, word]) => number > 1 && (word !== 'recordings' || number !== Math.max(names.length, ranks))).map(([number, word]) => `${number} ${word}`);
}

interface CardProps { name: SideName; side: Side; report: ProfileReport | null; most: number; facts: string }

function Card({ name, side, report, most, facts }: CardProps) {
  const { steps } = side;
  const items = report && shownSteps(report);
  const parts = (index: number | null): LedgerGroupSlice[] => (report && items !== report.steps.items ? groupsOf(accountOf(report.ledger, index)) : []);
  const choose = (text: string): void => chooseSteps(name, text);
  return (
    <section class="side-card" aria-label={TITLES[name]}>
      <div class="side-head"><h2>{TITLES[name]}</h2><span class="muted number">{facts}</span></div>
      <div class="side-picks">
        <Picks side={side} several={report?.rank === null ? 'Recording' : 'Rank'} onChange={(changes) => changeSide(name, changes)} />
        <StepsField steps={steps} fault={(text) => rangeFault(text, items)} onSteps={choose} />
        {steps && <Button kind="quiet" onClick={() => choose('')}>All steps</Button>}
      </div>
      {items && items.length > 1 && (
        <StepStrip several label={`Steps of the ${TITLES[name].toLowerCase()}`} columns={columnsOf(parts, items, most)}
          marks={ticks(most, 3).map((ns) => ({ height: ns / most, text: ns === 0 ? '0' : nanoseconds(ns) }))} chosen={rangeIn(items, steps)}
          onChoose={(range) => choose(range ? rangeText(items, range) : '')} />
      )}
      {report && new Set(profilesOf(side).map(({ worker }) => worker)).size > 1 && <p class="muted side-note">Shown are the steps of {report.worker}; those of all {report.rank === null ? 'recordings' : 'ranks'} count.</p>}
      <Outliers report={report} chosen={items && rangeIn(items, steps)} />
    </section>
  );
}

const MOST_OUTLIERS = 2;

/** Why some of the steps are unusual. */
function Outliers({ report, chosen }: { report: ProfileReport | null; chosen: Range | null }) {
  const found = (report?.outliers ?? []).filter(({ step }) => !chosen || (chosen.first <= step && step <= chosen.last));
  if (found.length === 0) return null;
  return (
    <ul class="side-outliers">
      {found.slice(0, MOST_OUTLIERS).map(({ name, text }) => <li key={name}><span class="odd-sign" aria-hidden="true">{ODDITIES.outlier.sign}</span> <Message text={text} /></li>)}
      {found.length > MOST_OUTLIERS && <li class="muted">{plural(found.length - MOST_OUTLIERS, 'more outlier')}; choose one to read why.</li>}
    </ul>
  );
}

const ALL = { value: '', label: 'all' };

interface PicksProps { side: Side; several: 'Rank' | 'Recording'; onChange: (changes: Partial<Side>) => void }

/**
 * Run, rank and span; recordings of a run that state no rank are not called ranks. Parts without a choice are hidden; a
 * missing part named by a link is reported.
 */
function Picks({ side, several, onChange }: PicksProps) {
  const all = runs.value?.runs ?? [];
  const profiles = all.find(({ run }) => run === side.run)?.profiles ?? [];
  const workers = [...new Set(profiles.map(({ worker }) => worker))];
  const spans = [...new Set(profilesOf({ ...side, span: '' }).map(({ span }) => span))];
  return (
    <>
      <Select label="Run" value={side.run ?? ''} options={withGone(all.map(({ run }) => ({ value: run, label: run || '.' })), side.run ?? '')}
        onChange={(run) => onChange({ run, rank: '', span: '', steps: '' })} />
      {(workers.length > 1 || side.rank) && (
        <Select label={several} value={side.rank} options={withGone([ALL, ...workers.map((value) => ({ value, label: value }))], side.rank)}
          onChange={(rank) => onChange({ rank, span: '' })} />
      )}
      {(spans.length > 1 || side.span) && (
        <Select label="Span" value={side.span} options={withGone([ALL, ...spans.map((value) => ({ value, label: spanText(value) }))], side.span)}
          onChange={(span) => onChange({ span, steps: '' })} />
      )}
    </>
  );
}

type Options = { value: string; label: string }[];

const withGone = (options: Options, value: string): Options =>
  (options.some((option) => option.value === value) ? options : [...options, { value, label: value }]);

interface StepsProps { steps: string; fault: (text: string) => string; onSteps: (text: string) => void }

/** A range as text, applied with Enter or when the field loses the focus. */
function StepsField({ steps, fault, onSteps }: StepsProps) {
  const [text, setText] = useState(steps);
  useEffect(() => setText(steps), [steps]);
  const wrong = fault(text.trim());
  const take = (): void => { if (!wrong && text.trim() !== steps) onSteps(text.trim()); };
  return (
    <label class={`select steps-field${wrong ? ' wrong' : ''}`}>
      <span class="select-label">Steps</span>
      <input type="text" value={text} placeholder="all" autocomplete="off" spellcheck={false} aria-label="Steps"
        aria-invalid={wrong !== ''} onInput={(event) => setText(event.currentTarget.value)} onBlur={take}
        onKeyDown={(event) => { if (event.key === 'Enter') take(); }} />
      <span class="steps-fault" role="status">{wrong}</span>
    </label>
  );
}
