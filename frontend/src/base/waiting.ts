/** Waits, and fails where what it waits for was given up meanwhile. */
export async function pause(ms: number, given?: AbortSignal | null): Promise<void> {
  await new Promise((resolve) => { setTimeout(resolve, ms); });
  given?.throwIfAborted();
}
