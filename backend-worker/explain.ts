import { splitHeaders } from '../common/header-lines.ts'

const MARK = 'explain\nTrue\n'

/** /explanations marks its requests with this header (spec 1.5). The text may also hold the mark by chance, so a hit is looked at. */
export function isExplain(headerLines: string): boolean {
  return headerLines.includes(MARK) && splitHeaders(headerLines)['explain'] === 'True'
}
