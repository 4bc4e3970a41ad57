/** Text with marks, as a list of pieces to set as text nodes. */

export type Span =
  | { kind: 'text' | 'code' | 'strong' | 'emphasis'; text: string }
  | { kind: 'link'; text: string; url: string };

/** Backticks only: for messages, in which a star or bracket is part of a recorded name. */
export function codeSpans(text: string): Span[] {
  return text.split(/(`+[^`]+`+)/).filter(Boolean).map((part) => {
    const code = /^(`+)([^`]+)\1$/.exec(part)?.[2];
    return code === undefined ? { kind: 'text', text: part } : { kind: 'code', text: code };
  });
}

const MARKS = /(\*\*[^*]+\*\*|(?<![*\w])\*[^*\s][^*]*\*(?!\w)|\[[^\]]+\]\(https?:\/\/[^\s)]+\))/;

/** The inline part of Markdown: code, strong, emphasis, and links to the web. */
export function inlineSpans(text: string): Span[] {
  return codeSpans(text).flatMap((span) => (span.kind === 'text' ? marked(span.text) : [span]));
}

function marked(text: string): Span[] {
  return text.split(MARKS).filter(Boolean).map((part): Span => {
    const [, label, url] = /^\[([^\]]+)\]\((https?:\/\/[^\s)]+)\)$/.exec(part) ?? [];
    if (label !== undefined && url !== undefined) return { kind: 'link', text: label, url };
    if (part.startsWith('**') && part.endsWith('**') && part.length > 4) return { kind: 'strong', text: part.slice(2, -2) };
    if (part.startsWith('*') && part.endsWith('*') && part.length > 2) return { kind: 'emphasis', text: part.slice(1, -1) };
    return { kind: 'text', text: part };
  });
}

/** A message without its marks, for titles and announcements. */
export const plainText = (text: string): string => codeSpans(text).map((span) => span.text).join('');
