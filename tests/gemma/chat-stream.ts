/**
 * Forces Gemma's token " the", so that no stream ends by itself (the runtime accepts no bias on end tokens).
 */
const ONE_TOKEN = { 506: 100 }

export interface ChatOptions {
  url: string
  model: string
  question: string
  maxTokens: number
  signal: AbortSignal
}

/** One chat over the OpenAI API, read as fast as it comes. */
export class ChatStream {
  /** When each piece of text came, in milliseconds. */
  readonly times: number[] = []
  /** How it ended; undefined: it goes on. */
  end: 'complete' | 'aborted' | Error | undefined
  #reason: string | undefined
  readonly #leaving = new AbortController()
  #wake: (() => void) | undefined

  constructor(options: ChatOptions) {
    void this.#read(options).then(
      () => this.#ended('complete'),
      (error: unknown) => {
        this.#ended(this.#leaving.signal.aborted ? 'aborted' : (error as Error))
      },
    )
  }

  /** Resolves when so many pieces have come. @throws Error when it ends before */
  async reaches(pieces: number): Promise<void> {
    while (this.times.length < pieces) {
      if (this.end !== undefined)
        throw new Error(
          `The stream ended after ${this.times.length} of ${pieces} pieces: ${String(this.end)} (${this.#reason})`,
        )
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  leave(): void {
    this.#leaving.abort()
  }

  async #read({ url, model, question, maxTokens, signal }: ChatOptions): Promise<void> {
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      body: JSON.stringify({
        model,
        messages: [{ role: 'user', content: question }],
        max_tokens: maxTokens,
        temperature: 1,
        logit_bias: ONE_TOKEN,
        stream: true,
      }),
      signal: AbortSignal.any([signal, this.#leaving.signal]),
    })
    if (!response.ok) throw new Error(`Status ${response.status}: ${await response.text()}`)
    const decoder = new TextDecoder()
    let rest = ''
    for await (const bytes of response.body!) {
      const events = (rest + decoder.decode(bytes as Uint8Array, { stream: true })).split('\n\n')
      rest = events.pop()!
      for (const event of events) this.#event(event)
    }
  }

  #event(event: string): void {
    if (!event.startsWith('data: {')) return
    const { choices, error } = JSON.parse(event.slice(6)) as {
      choices?: { delta: { content?: string }; finish_reason: string | null }[]
      error?: { message: string }
    }
    if (error !== undefined) throw new Error(error.message)
    this.#reason = choices?.[0]?.finish_reason ?? this.#reason
    if (!choices?.[0]?.delta.content) return
    this.times.push(performance.now())
    this.#wake?.()
  }

  #ended(how: NonNullable<ChatStream['end']>): void {
    this.end = how
    this.#wake?.()
  }
}
