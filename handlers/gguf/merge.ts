/**
 * Merges iterators, in the order in which items arrive. Requests an iterator's next item when its last one
 * was taken. Ends all iterators when one fails or the reader stops.
 */
export async function* merge<T>(iterators: readonly AsyncGenerator<T>[]): AsyncGenerator<T> {
  const ask = async (place: number) => ({ place, result: await iterators[place]!.next() })
  const pending = new Map(iterators.map((_iterator, place) => [place, ask(place)]))
  try {
    while (pending.size > 0) {
      const { place, result } = await Promise.race(pending.values())
      if (result.done === true) {
        pending.delete(place)
        continue
      }
      yield result.value
      pending.set(place, ask(place))
    }
  } finally {
    for (const asked of pending.values()) asked.catch(() => undefined)
    await Promise.allSettled(iterators.map((iterator) => iterator.return(undefined)))
  }
}
