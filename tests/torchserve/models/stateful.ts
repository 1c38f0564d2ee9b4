import type { Context, HandlerRequest } from 'torchserve-ts'

/**
 * The handler of examples/stateful/sequence_batching: sums the numbers of each sequence and returns the sum.
 * It keeps the sums of the `handler.cache.capacity` most recently used sequences.
 */
export default class StatefulSums {
  readonly #sums = new Map<string, number>()
  #capacity = 10

  initialize(context: Context): void {
    const handler = context.modelConfig['handler'] as { cache?: { capacity?: number } } | undefined
    this.#capacity = handler?.cache?.capacity ?? this.#capacity
  }

  handle(requests: HandlerRequest[], context: Context): number[] {
    return requests.map((request, index) => this.#add(context.sequenceId(index) ?? '', request))
  }

  #add(sequence: string, request: HandlerRequest): number {
    const sum = (this.#sums.get(sequence) ?? 0) + Number(String(request['data'] ?? request['body']))
    this.#sums.delete(sequence)
    this.#sums.set(sequence, sum)
    if (this.#sums.size > this.#capacity) this.#sums.delete(this.#sums.keys().next().value!)
    return sum
  }
}
