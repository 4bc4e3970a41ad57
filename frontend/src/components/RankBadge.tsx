/** Marks a finding that ranks show together; nothing for all others. */

export const RankBadge = ({ ranks }: { ranks: string }) => (ranks ? <> <span class="rank-badge">{ranks}</span> </> : null);
