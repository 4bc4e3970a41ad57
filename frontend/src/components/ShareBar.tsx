/** A figure with its part of a whole as a bar behind it. */

export const ShareBar = ({ share, text }: { share: number; text: string }) => (
  <span class="share-bar">
    <span class="share-track" aria-hidden="true"><span style={{ width: `${Math.min(1, Math.max(0, share)) * 100}%` }} /></span>
    <span class="share-text">{text}</span>
  </span>
);
