import { setTimeout as sleep } from 'node:timers/promises'
import type { Subject } from './subject.ts'

/** Requests that a healthy server answers, all the time: streams, single answers, two versions by weight. */
export class Load {
  readonly #subject: Subject
  readonly #running: Promise<void>[] = []
  #isOn = true

  constructor(subject: Subject) {
    this.#subject = subject
  }

  /** Sets up the weights, wakes the model at zero, and begins. */
  async begin(): Promise<void> {
    const { server } = this.#subject
    for (const version of ['1.0', '2.0']) {
      const path = `/models?url=m-${version}&model_name=m&initial_workers=1`
      const { status, json } = await server.manage('POST', path)
      if (status !== 200) throw new Error(JSON.stringify(json))
    }
    await this.#subject.weigh('m', { weights: { '1.0': 50, '2.0': 50 } })
    await server.until(
      () => server.describe('sleeper'),
      ([model]) => model!.workers.length === 0,
    )
    await this.#expect('sleeper', 'hello')
    // A histogram begins with its first value, and a rate with the second one.
    await this.#expect('narrow', { n: 2, delay: 5 })
    this.#repeat(() => this.#expect('count', { n: 5, delay: 20 }))
    this.#repeat(() => this.#expect('count', { n: 20, delay: 50 }))
    this.#repeat(() => this.#expect('count', { n: 3, delay: 0, stream: false }))
    this.#repeat(() => this.#expect('m', 'hello'))
  }

  /** @throws Error when an answer was not right */
  async end(): Promise<void> {
    this.#isOn = false
    await Promise.all(this.#running)
  }

  async #expect(model: string, body: object | string): Promise<void> {
    const { status, complete, body: text } = await this.#subject.ask(model, body)
    if (status !== 200 || !complete) throw new Error(`${model} answered ${status}: ${text}`)
  }

  #repeat(act: () => Promise<void>): void {
    const run = async (): Promise<void> => {
      while (this.#isOn) {
        await act()
        await sleep(50)
      }
    }
    const running = run()
    running.catch(() => undefined) // told by `end`
    this.#running.push(running)
  }
}
