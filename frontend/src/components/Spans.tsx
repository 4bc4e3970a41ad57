/** Marked text, every piece as a text node. */

import { codeSpans, inlineSpans, type Span } from '../base/inline';

/** A message of the report: only backticks are marks. */
export const Message = ({ text }: { text: string }) => <Spans spans={codeSpans(text)} />;

/** A line of a rule's page: the inline part of Markdown. */
export const Inline = ({ text }: { text: string }) => <Spans spans={inlineSpans(text)} />;

const Spans = ({ spans }: { spans: readonly Span[] }) => <>{spans.map(piece)}</>;

function piece(span: Span) {
  switch (span.kind) {
    case 'code': return <code>{span.text}</code>;
    case 'strong': return <strong>{span.text}</strong>;
    case 'emphasis': return <em>{span.text}</em>;
    case 'link': return <a href={span.url} target="_blank" rel="noreferrer">{span.text}</a>;
    case 'text': return <>{span.text}</>;
    default: return span satisfies never;
  }
}
