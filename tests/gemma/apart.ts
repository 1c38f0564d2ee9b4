import assert from 'node:assert/strict'

const PROMPTS = [
  'The capital of France is',
  'Once upon a time there was a cat who',
  'The sky is blue because',
  'The three primary colours are',
  'The president of the United States lives in',
  'Water freezes at a temperature of',
  'The first man on the moon was',
  'My favourite programming language is',
]
const TOKENS = 16
/**
 * Floating-point sums vary with the batch size, and so does the text where two tokens are almost equally
 * likely.
 */
const MAX_DIFFERENT = 3

/** Completions of one batch match those computed alone: none gets another one's text. */
export async function completionsApart(url: string, model: string, signal: AbortSignal): Promise<void> {
  const complete = async (prompt: string): Promise<string> => {
    const body = JSON.stringify({ model, prompt, max_tokens: TOKENS, temperature: 0 })
    const response = await fetch(`${url}/v1/completions`, { method: 'POST', body, signal })
    const { choices } = (await response.json()) as { choices: { text: string }[] }
    return choices[0]!.text
  }
  const alone: string[] = []
  for (const prompt of PROMPTS) alone.push(await complete(prompt))
  const together = await Promise.all(PROMPTS.map(complete))
  const different = PROMPTS.map((prompt, i) => ({ prompt, alone: alone[i], together: together[i] })).filter(
    (each) => each.alone !== each.together,
  )
  console.log(
    `        ${PROMPTS.length - different.length} of ${PROMPTS.length} texts are the same, alone and together`,
  )
  assert.ok(different.length <= MAX_DIFFERENT, JSON.stringify(different, undefined, 2))
}
