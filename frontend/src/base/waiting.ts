/** Waits, and fails if the awaited work was aborted meanwhile. */
export async function pause(ms: number, given?: AbortSignal | null): Promise<void> {
  await new Promise((resolve) => { setTimeout(resolve, ms); });
  given?.throwIfAborted();
}
