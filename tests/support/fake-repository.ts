import type { IndexEntry, RepositoryOperations } from '../../frontend/models/operations.ts'

/** Writes down what it was asked. */
export class FakeRepository implements RepositoryOperations {
  readonly asked: [string, string][] = []
  entries: IndexEntry[] = []

  index(onlyReady = false): Promise<IndexEntry[]> {
    return Promise.resolve(this.entries.filter(({ state }) => !onlyReady || state === 'READY'))
  }

  load(modelName: string): Promise<void> {
    this.asked.push(['load', modelName])
    return Promise.resolve()
  }

  unload(modelName: string): Promise<void> {
    this.asked.push(['unload', modelName])
    return Promise.resolve()
  }
}
