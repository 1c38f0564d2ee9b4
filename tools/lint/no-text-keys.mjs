import ts from 'typescript'

/**
 * Forbids arbitrary text as a key of an object with a prototype, where `constructor` and `__proto__` exist
 * too. Keys of a closed set (a union of literals, an enum, a number) are allowed. For other keys use a Map,
 * or ownValue and setOwn of common/json.ts.
 */
export const noTextKeys = {
  meta: {
    type: 'problem',
    schema: [],
    messages: {
      lookup:
        'A key that is any text must not be looked up in an object with a prototype: `constructor` is found there. Use a Map, or ownValue and setOwn of common/json.ts.',
      assign: 'Object.assign sets the prototype when its source has a key `__proto__`. Use a spread.',
    },
  },
  create(context) {
    const services = context.sourceCode.parserServices
    const checker = services.program.getTypeChecker()
    const typeOf = (node) => {
      const type = services.getTypeAtLocation(node)
      return checker.getBaseConstraintOfType(type) ?? type
    }
    const check = (node, key) => {
      if (isAnyText(typeOf(key))) context.report({ node, messageId: 'lookup' })
    }
    return {
      MemberExpression(node) {
        if (node.computed) check(node, node.property)
      },
      BinaryExpression(node) {
        if (node.operator === 'in' && node.left.type !== 'PrivateIdentifier') check(node, node.left)
      },
      'ObjectPattern > Property[computed=true]'(node) {
        check(node, node.key)
      },
      'CallExpression[callee.object.name="Object"][callee.property.name="assign"]'(node) {
        context.report({ node, messageId: 'assign' })
      },
    }
  },
}

/** Whether the values of the type are unknown at compile time. */
function isAnyText(type) {
  if (type.isUnion()) return type.types.some(isAnyText)
  if (type.isIntersection()) return type.types.every((part) => isAnyText(part) || !isKeyType(part))
  const anyText =
    ts.TypeFlags.Any |
    ts.TypeFlags.Unknown |
    ts.TypeFlags.String |
    ts.TypeFlags.TemplateLiteral |
    ts.TypeFlags.StringMapping
  return (type.flags & anyText) !== 0
}

function isKeyType(type) {
  return (type.flags & (ts.TypeFlags.StringLike | ts.TypeFlags.NumberLike | ts.TypeFlags.ESSymbolLike)) !== 0
}
