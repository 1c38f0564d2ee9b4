import type {
  ChatChunk,
  ChatDelta,
  Completion,
  CompletionChunk,
  CompletionLogprobs,
  ChatLogprobs,
  FinishReason,
  ToolCall,
} from '../../common/openai/types.ts'

/** A complete chat completion as stream chunks, for handlers that do not stream. */
export function chatChunks({ choices, ...whole }: Completion): ChatChunk[] {
  return choices.map((choice, place) => {
    const { tool_calls: calls, ...delta } = (choice['message'] ?? {}) as ChatDelta & {
      tool_calls?: ToolCall[]
    }
    const made =
      calls === undefined ? delta : { ...delta, tool_calls: calls.map((call, i) => ({ ...call, index: i })) }
    return {
      ...whole,
      object: 'chat.completion.chunk',
      choices: [
        {
          index: Number(choice['index'] ?? place),
          delta: { role: 'assistant', ...made },
          logprobs: choice['logprobs'] as ChatLogprobs | null,
          finish_reason: (choice['finish_reason'] ?? 'stop') as FinishReason,
        },
      ],
    }
  })
}

/** The same for a legacy completion. */
export function completionChunks({ choices, ...whole }: Completion): CompletionChunk[] {
  return choices.map((choice, place) => ({
    ...whole,
    choices: [
      {
        index: Number(choice['index'] ?? place),
        text: typeof choice['text'] === 'string' ? choice['text'] : '',
        logprobs: choice['logprobs'] as CompletionLogprobs | null,
        finish_reason: (choice['finish_reason'] ?? 'stop') as FinishReason,
      },
    ],
  }))
}
