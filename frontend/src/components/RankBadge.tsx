/** Marks a finding about several ranks; empty for all others. */

export const RankBadge = ({ ranks }: { ranks: string }) => (ranks ? <> <span class="rank-badge">{ranks}</span> </> : null);
