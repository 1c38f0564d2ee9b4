/** The parsed data of Server-Sent Events; the end is text. */
export function events(text: string): unknown[] {
  return text
    .split('\n\n')
    .filter((event) => event.startsWith('data: '))
    .map((event): unknown => (event === 'data: [DONE]' ? '[DONE]' : JSON.parse(event.slice(6))))
}
