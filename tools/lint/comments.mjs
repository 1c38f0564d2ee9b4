/** Lines of comments have at most this many columns, like the code (.prettierrc.json, printWidth). */
const MAX_COLUMNS = 110

/** Forbids comments on lines that are longer than the column limit; Prettier does not wrap comments. */
export const commentLength = {
  meta: {
    type: 'layout',
    schema: [],
    messages: {
      tooLong: `A line with a comment must have at most ${MAX_COLUMNS} columns: it has {{columns}}.`,
    },
  },
  create: onCommentLines((report, text) => {
    if (text.length > MAX_COLUMNS) report('tooLong', { columns: String(text.length) })
  }),
}

/** Forbids citations such as `(spec 5.2)`: readers cannot open the document behind the number. */
export const noSectionCitations = {
  meta: {
    type: 'problem',
    schema: [],
    messages: {
      citation:
        'A citation of a section number is not supported: name a page of docs/, or a public specification.',
    },
  },
  create: onCommentLines((report, text) => {
    if (/\bspec,? \d/.test(text)) report('citation', {})
  }),
}

/** The `create` of a rule that checks every source line on which a comment stands. */
function onCommentLines(check) {
  return (context) => ({
    Program() {
      const { sourceCode } = context
      const lines = new Set()
      for (const { loc } of sourceCode.getAllComments())
        for (let line = loc.start.line; line <= loc.end.line; line++) lines.add(line)
      for (const line of lines) {
        const text = sourceCode.lines[line - 1]
        const loc = { start: { line, column: 0 }, end: { line, column: text.length } }
        check((messageId, data) => context.report({ loc, messageId, data }), text)
      }
    },
  })
}
