/** Whole files, with the findings at their lines. */

import { useRef } from 'preact/hooks';
import { fileName } from '../../base/places';
import { Button } from '../../components/Button';
import { Choice } from '../../components/Choice';
import { Failure } from '../../components/Failure';
import { Hero } from '../../components/Hero';
import { Notice } from '../../components/Notice';
import { Select } from '../../components/Select';
import { Message } from '../../components/Spans';
import { backToList } from '../../state/actions';
import { finding } from '../../state/findings';
import { useWantedFocus } from '../../state/focus';
import { gutter, lineCosts, missingCosts, unknownLines, useLineCosts } from '../../state/lines';
import { openFile, openLine, outline, showFile, showSpot, useOtherFiles, type FileOutline } from '../../state/outline';
import { useSource } from '../../state/source';
import { per } from '../../state/profile';
import { narrow } from '../../state/viewport';
import { WholeFile } from './WholeFile';

export function Source() {
  const heading = useRef<HTMLHeadingElement>(null);
  useWantedFocus('heading', heading);
  const file = openFile.value;
  const others = useOtherFiles();
  if (!file) {
    return (
      <main class="detail">
        <Hero title="No source lines"><p>No finding of this profile has a line in a source file.</p></Hero>
      </main>
    );
  }
  const inSelect = narrow.value && outline.value.length + others.length > 1; // which then shows the name
  return (
    <main class="source" aria-labelledby="source-title">
      <div class="source-head">
        <Button kind="quiet" icon="back" onClick={backToList}>Finding</Button>
        <h1 id="source-title" class={inSelect ? 'hidden' : 'path'} ref={heading} tabIndex={-1}>{narrow.value ? fileName(file.file) : file.file}</h1>
        {inSelect && <FileSelect others={others} />}
        <span class="chart-space" />
        {finding.value && <Choice label="Costs of" value={gutter.value} options={GUTTERS} onChoose={(id) => { gutter.value = id; }} />}
      </div>
      <Text file={file} />
    </main>
  );
}

const GUTTERS = [{ id: 'calls', label: 'All calls' }, { id: 'finding', label: 'This finding' }] as const;

function FileSelect({ others }: { others: ReturnType<typeof useOtherFiles> }) {
  return (
    <Select label="File" value={openFile.value?.file ?? ''} options={[...outline.value, ...others].map(({ file, name }) => ({ value: file, label: name }))}
      onChange={(chosen) => {
        const spot = outline.value.find(({ file }) => file === chosen)?.spots[0];
        const other = others.find(({ file }) => file === chosen);
        if (spot) showSpot(spot);
        else if (other) showFile(other.file, other.line);
      }} />
  );
}

function Text({ file }: { file: FileOutline }) {
  const source = useSource(file.file);
  useLineCosts();
  switch (source.kind) {
    case 'loading': return <div class="code-wait" aria-hidden="true" />;
    case 'failed': return <div class="pad"><Failure error={source.error} onRetry={source.again} /></div>;
    case 'missing': return <Hero title="Source not available here"><p><Message text={source.reason} /></p></Hero>;
    case 'ready': return (
      <>
        {source.answer.changed && <Notice kind="warning"><p>The file is newer than the recording: marked lines may have moved.</p></Notice>}
        {missingCosts.value && <p class="no-costs"><Message text={missingCosts.value} /></p>}
        {unknownLines.value && <p class="no-costs"><Message text={unknownLines.value} /></p>}
        <WholeFile key={file.file} file={file} lines={source.lines} line={openLine.value} costs={lineCosts.value} per={per.value} />
      </>
    );
    default: return source satisfies never;
  }
}
