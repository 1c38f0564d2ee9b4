import {
  type ChatCompletionRequest,
  type ChatChunk,
  type Completion,
  type CompletionRequest,
  type Context,
  PredictionException,
} from 'torchserve-ts'

interface State {
  word: 'running' | 'finished' | 'cancelled'
  at: number
}

/**
 * Streams the words of the last message, `pause` milliseconds apart, fails at the word `boom`, and remembers
 * how the runs of each `user` ended. A completion with the user's name as prompt returns that; the prompt
 * `calls` returns the number of chats.
 */
export default class Chat {
  readonly #states = new Map<string, State>()
  #calls = 0

  async *chatCompletions(request: ChatCompletionRequest, context: Context): AsyncGenerator<ChatChunk> {
    this.#calls += 1
    const { messages, user = '', pause } = request
    const state: State = { word: 'running', at: Date.now() }
    this.#states.set(user, state)
    context.signal.addEventListener('abort', () =>
      Object.assign(state, { word: 'cancelled', at: Date.now() }),
    )
    const { content } = messages.at(-1)!
    for (const word of (typeof content === 'string' ? content : '').split(/(?<= )/)) {
      if (context.signal.aborted) return
      if (word.trim() === 'boom') throw new PredictionException('The word is boom', 500)
      yield { choices: [{ index: 0, delta: { content: word } }] }
      await new Promise((resolve) => setTimeout(resolve, typeof pause === 'number' ? pause : 0))
    }
    if (state.word === 'running') state.word = 'finished'
  }

  completions({ prompt }: CompletionRequest): Completion {
    const { word, at } = this.#states.get(String(prompt)) ?? { word: 'unknown', at: 0 }
    const text = prompt === 'calls' ? String(this.#calls) : `${word} ${at}`
    return { object: 'text_completion', choices: [{ index: 0, text, logprobs: null, finish_reason: 'stop' }] }
  }
}
