import { getLlama, LlamaCompletion } from 'node-llama-cpp'

/** The library's own completion at temperature 0. */
export async function completeDirectly(
  modelPath: string,
  prompt: string,
  maxTokens: number,
): Promise<string> {
  const llama = await getLlama({ gpu: false, build: 'never', skipDownload: true })
  const model = await llama.loadModel({ modelPath })
  const context = await model.createContext({ contextSize: 256, threads: 1 })
  const completion = new LlamaCompletion({ contextSequence: context.getSequence() })
  const text = await completion.generateCompletion(prompt, { maxTokens, temperature: 0 })
  await llama.dispose()
  return text
}
