import { describe, expect, test } from '@jest/globals'
import type { LlamaModel, Token } from 'node-llama-cpp'
import { TokenText } from '../../handlers/gguf/tokens.ts'

const PIECES: Readonly<Record<number, Buffer>> = Object.fromEntries(
  [' In', ' the', ' God', '<s>'].map((text, token) => [token, Buffer.from(text)]),
)
const [IN, THE, GOD, HALF, OTHER_HALF] = [0, 1, 2, 4, 5].map((token) => token as Token) as [
  Token,
  Token,
  Token,
  Token,
  Token,
]

/** A vocabulary like SentencePiece's: the runtime takes away the space at the beginning of a text. */
const model = {
  detokenize(tokens: Token[], _special: boolean, before: Token[] = []) {
    const bytes = { ...PIECES, [HALF]: Buffer.from([0xc3]), [OTHER_HALF]: Buffer.from([0xa9]) }
    const text = (ids: Token[]): string => Buffer.concat(ids.map((id) => bytes[id]!)).toString()
    return before.length === 0 ? text(tokens).replace(/^ /, '') : text(tokens)
  },
} as unknown as LlamaModel

describe('the text of tokens', () => {
  test('has the space between a prompt and what continues it', () => {
    const alone = new TokenText(model)
    expect([alone.push(IN), alone.push(THE)]).toEqual(['In', ' the'])
    expect(new TokenText(model, false, [IN, THE]).push(GOD)).toBe(' God')
  })

  test('has whole characters only, but for half a one at the end', () => {
    const text = new TokenText(model, false, [IN])
    expect([text.push(HALF), text.push(OTHER_HALF), text.push(HALF), text.end()]).toEqual([
      '',
      'é',
      '',
      '\uFFFD',
    ])
  })
})
