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
/** Sums of many numbers differ a little with the size of a batch, and with them, where two tokens are as likely, the text. */
const MAX_DIFFERENT = 3

/** Completions that are computed together say what each says alone: none gets what was computed for another. */
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
