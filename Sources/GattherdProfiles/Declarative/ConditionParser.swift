import GattherdConfig

/// Reads what `when` and `from` say about earlier fields.
///
///     condition  = all { "|" all }               also: or, ||
///     all        = part { "&" part }              also: and, &&
///     part       = "!" part | comparison          also: not
///     comparison = operand [ ("==" | "!=" | "<" | "<=" | ">" | ">=") operand ]
///     operand    = number | field | "(" condition ")"
///     field      = name [ "." bit | "[" high ":" low "]" ]
struct ConditionParser {
    typealias Failure = ConditionLexer.Failure

    private static let deepest = 32
    private static let comparisons: [String: ConditionNodes.Comparison] = [
        "==": .equal, "!=": .notEqual, "<": .less, "<=": .lessOrEqual, ">": .greater, ">=": .greaterOrEqual,
    ]

    private var lexer: ConditionLexer
    private var token = ConditionLexer.Token.end
    private var depth = 0
    private let names: FieldNames

    private init(_ text: String, _ names: FieldNames) throws(Failure) {
        lexer = ConditionLexer(text)
        self.names = names
        token = try lexer.next()
    }

    /// Reads a whole condition into `nodes` and gives its position there.
    static func condition(
        _ text: String,
        _ names: FieldNames,
        into nodes: inout ConditionNodes
    ) throws(Failure) -> Int {
        var parser = try ConditionParser(text, names)
        let root = try parser.any(&nodes)
        try parser.expectEnd()
        return root
    }

    /// Reads the name of a field, or of some of its bits; `isBit` for exactly one.
    static func field(_ text: String, _ names: FieldNames) throws(Failure) -> (ConditionNodes.Operand, isBit: Bool) {
        var parser = try ConditionParser(text, names)
        guard case .name(let name) = parser.token else { throw parser.failure("expected the name of an earlier field") }
        let field = try parser.field(name)
        try parser.expectEnd()
        return field
    }

    private mutating func any(_ nodes: inout ConditionNodes) throws(Failure) -> Int {
        depth += 1
        defer { depth -= 1 }
        guard depth <= Self.deepest else { throw failure("this is nested too deeply") }
        var left = try all(&nodes)
        while try take("|") { left = nodes.add(.or(left, try all(&nodes))) }
        return left
    }

    private mutating func all(_ nodes: inout ConditionNodes) throws(Failure) -> Int {
        var left = try part(&nodes)
        while try take("&") { left = nodes.add(.and(left, try part(&nodes))) }
        return left
    }

    private mutating func part(_ nodes: inout ConditionNodes) throws(Failure) -> Int {
        guard try take("!") else { return try comparison(&nodes) }
        var isTrue = false
        while try take("!") { isTrue.toggle() }
        var inner = try operand(&nodes)
        if case .sign(let sign) = token, Self.comparisons[sign] != nil {
            throw failure("'!' before a comparison can be read in two ways; put the comparison in parentheses")
        }
        inner = nodes.add(.not(inner))
        return isTrue ? nodes.add(.not(inner)) : inner
    }

    private mutating func comparison(_ nodes: inout ConditionNodes) throws(Failure) -> Int {
        let left = try operand(&nodes)
        guard case .sign(let sign) = token, let comparison = Self.comparisons[sign] else { return left }
        token = try lexer.next()
        return nodes.add(.compare(comparison, left, try operand(&nodes)))
    }

    private mutating func operand(_ nodes: inout ConditionNodes) throws(Failure) -> Int {
        switch token {
        case .number(let number):
            token = try lexer.next()
            return nodes.add(.constant(number))
        case .name(let name):
            return nodes.add(.bits(try field(name).0))
        case .sign("("):
            token = try lexer.next()
            let inner = try any(&nodes)
            guard try take(")") else { throw failure("expected ')'") }
            return inner
        default:
            throw failure("expected a name, a number or '('")
        }
    }

    private mutating func field(_ name: String) throws(Failure) -> (ConditionNodes.Operand, isBit: Bool) {
        guard let field = names[name] else { throw failure(names.unknown(name)) }
        token = try lexer.next()
        if try take(".") {
            let bit = try bit(of: name, field.bits)
            return (ConditionNodes.Operand(register: field.register, shift: bit, mask: 1), true)
        }
        guard try take("[") else {
            return (ConditionNodes.Operand(register: field.register, shift: 0, mask: -1), false)
        }
        let high = try bit(of: name, field.bits)
        guard try take(":") else { throw failure("expected ':' and the lowest bit, as in \(name)[3:0]") }
        let low = try bit(of: name, field.bits)
        guard low <= high else { throw failure("the highest bit comes first, as in \(name)[3:0]") }
        guard try take("]") else { throw failure("expected ']'") }
        let mask: Int64 = (1 << (high - low + 1)) - 1
        return (ConditionNodes.Operand(register: field.register, shift: low, mask: mask), high == low)
    }

    private mutating func bit(of name: String, _ bits: Int64) throws(Failure) -> Int64 {
        guard case .number(let bit) = token else { throw failure("expected the number of a bit, as in \(name).0") }
        guard (0..<bits).contains(bit) else { throw failure("'\(name)' has the bits 0 to \(bits - 1)") }
        token = try lexer.next()
        return bit
    }

    private mutating func take(_ sign: String) throws(Failure) -> Bool {
        guard token == .sign(sign) else { return false }
        token = try lexer.next()
        return true
    }

    private func expectEnd() throws(Failure) {
        guard token == .end else { throw failure("expected the end, or one of & | == != < <= > >=") }
    }

    private func failure(_ reason: String) -> Failure {
        Failure(offset: lexer.start, reason: reason)
    }
}

/// The fields that came before and can be spoken of.
struct FieldNames {
    struct Field {
        let register: Int
        let bits: Int64
    }

    private var fields: [String: Field] = [:]
    private var order: [String] = []

    /// How many registers there are.
    var count: Int { order.count }

    subscript(name: String) -> Field? { fields[name] }

    /// Makes `name` known, or knows it with another width from now on; gives its register.
    mutating func add(_ name: String, bits: Int64) -> Int {
        let register = fields[name]?.register ?? order.count
        if fields[name] == nil { order.append(name) }
        fields[name] = Field(register: register, bits: bits)
        return register
    }

    /// What to say about a name that is not known.
    func unknown(_ name: String) -> String {
        if let nearest = Spelling.nearest(to: name, among: order) {
            return "no earlier field is called '\(name)'; did you mean '\(nearest)'?"
        }
        let known = order.isEmpty ? "none has a name" : "there are \(order.joined(separator: ", "))"
        return "no earlier field is called '\(name)'; \(known)"
    }
}
