import assert from 'node:assert/strict'

/** A repeated word goes on with high probability, whatever the batch size does to floating-point sums. */
const WORDS = ['red', 'cat', 'seven', 'Paris', 'water', 'Monday', 'apple', 'gold']
const REPEATS = 12
const TOKENS = 8

/** Each completion of one batch repeats its own word, as it does alone: none gets another one's text. */
export async function completionsApart(url: string, model: string, signal: AbortSignal): Promise<void> {
  const complete = async (prompt: string): Promise<string> => {
    const body = JSON.stringify({ model, prompt, max_tokens: TOKENS, temperature: 0 })
    const response = await fetch(`${url}/v1/completions`, { method: 'POST', body, signal })
    const { choices } = (await response.json()) as { choices: { text: string }[] }
    return choices[0]!.text
  }
  const prompts = WORDS.map((word) => Array<string>(REPEATS).fill(word).join(' '))
  const expected = WORDS.map((word) => ` ${word}`.repeat(TOKENS))
  const alone: string[] = []
  for (const prompt of prompts) alone.push(await complete(prompt))
  assert.deepEqual(alone, expected)
  assert.deepEqual(await Promise.all(prompts.map(complete)), expected)
}
