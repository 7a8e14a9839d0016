/// Parses conditions and integer expressions over earlier fields.
///
///     condition  = all { "|" all }               also: or, ||
///     all        = part { "&" part }              also: and, &&
///     part       = "!" part | comparison          also: not
///     comparison = sum [ ("==" | "!=" | "<" | "<=" | ">" | ">=") sum ]
///     sum        = product { ("+" | "-") product }
///     product    = operand { ("*" | "/" | "%") operand }
///     operand    = [ "-" ] number | field | "(" condition ")" | "bcd" "(" condition ")"
///                  in formulas also: "-" operand | function "(" condition { "," condition } ")"
///     field      = name [ "." bit | "[" high ":" low "]" ]
struct ExpressionParser {
    typealias Failure = ExpressionLexer.Failure

    private static let deepest = 32
    /// The maximum length in characters, which bounds the depth of the tree.
    private static let longest = 1000
    private static let comparisons: [String: ExpressionNodes.Comparison] = [
        "==": .equal, "!=": .notEqual, "<": .less, "<=": .lessOrEqual, ">": .greater, ">=": .greaterOrEqual,
    ]
    private static let sums: [String: ExpressionNodes.Arithmetic] = ["+": .plus, "-": .minus]
    private static let products: [String: ExpressionNodes.Arithmetic] = ["*": .times, "/": .over, "%": .modulo]

    private var lexer: ExpressionLexer
    private var token = ExpressionLexer.Token.end
    private var depth = 0
    private let names: FieldNames
    private let isFormula: Bool

    private init(_ text: String, _ names: FieldNames, isFormula: Bool) throws(Failure) {
        lexer = ExpressionLexer(text, isFormula: isFormula)
        self.names = names
        self.isFormula = isFormula
        token = try lexer.next()
    }

    /// Parses an expression, or a formula with real numbers, into `nodes` and returns its index.
    static func expression(
        _ text: String,
        _ names: FieldNames,
        isFormula: Bool = false,
        into nodes: inout ExpressionNodes
    ) throws(Failure) -> Int {
        guard text.count <= longest else {
            throw Failure(offset: 0, reason: "this is longer than \(longest) characters")
        }
        var parser = try ExpressionParser(text, names, isFormula: isFormula)
        let root = try parser.any(&nodes)
        guard parser.token == .end else {
            throw parser.failure("expected the end, or one of & | == != < <= > >= + - * / %")
        }
        return root
    }

    private mutating func any(_ nodes: inout ExpressionNodes) throws(Failure) -> Int {
        depth += 1
        defer { depth -= 1 }
        guard depth <= Self.deepest else { throw failure("this is nested too deeply") }
        var left = try all(&nodes)
        while try accept("|") { left = nodes.add(.or(left, try all(&nodes))) }
        return left
    }

    private mutating func all(_ nodes: inout ExpressionNodes) throws(Failure) -> Int {
        var start = lexer.start
        var left = try part(&nodes)
        while token == .sign("&") {
            try rejectMask(left, at: start, nodes)
            token = try lexer.next()
            start = lexer.start
            let right = try part(&nodes)
            try rejectMask(right, at: start, nodes)
            left = nodes.add(.and(left, right))
        }
        return left
    }

    /// Rejects a number beside '&', which joins conditions and masks no bits.
    private func rejectMask(_ node: Int, at offset: Int, _ nodes: ExpressionNodes) throws(Failure) {
        guard nodes.isConstant(node) else { return }
        throw Failure(offset: offset, reason: "'&' joins conditions; write bits as f[3:0], and a single bit as f.0")
    }

    private mutating func part(_ nodes: inout ExpressionNodes) throws(Failure) -> Int {
        guard try accept("!") else { return try comparison(&nodes) }
        var isTrue = false
        while try accept("!") { isTrue.toggle() }
        var inner = try operand(&nodes)
        if case .sign(let sign) = token, Self.comparisons[sign] != nil {
            throw failure("'!' before a comparison can be read in two ways; put the comparison in parentheses")
        }
        inner = nodes.add(.not(inner))
        return isTrue ? nodes.add(.not(inner)) : inner
    }

    private mutating func comparison(_ nodes: inout ExpressionNodes) throws(Failure) -> Int {
        let left = try sum(&nodes)
        guard case .sign(let sign) = token, let comparison = Self.comparisons[sign] else { return left }
        token = try lexer.next()
        return nodes.add(.compare(comparison, left, try sum(&nodes)))
    }

    private mutating func sum(_ nodes: inout ExpressionNodes) throws(Failure) -> Int {
        var left = try product(&nodes)
        while case .sign(let sign) = token, let arithmetic = Self.sums[sign] {
            token = try lexer.next()
            left = nodes.add(.compute(arithmetic, left, try product(&nodes)))
        }
        return left
    }

    private mutating func product(_ nodes: inout ExpressionNodes) throws(Failure) -> Int {
        var left = try operand(&nodes)
        while case .sign(let sign) = token, let arithmetic = Self.products[sign] {
            token = try lexer.next()
            left = nodes.add(.compute(arithmetic, left, try operand(&nodes)))
        }
        return left
    }

    private mutating func operand(_ nodes: inout ExpressionNodes) throws(Failure) -> Int {
        let isNegative = try accept("-")
        if case .number(let number) = token {
            token = try lexer.next()
            return nodes.add(.constant(isNegative ? -number : number))
        }
        if isNegative, isFormula {
            return nodes.add(.compute(.minus, nodes.add(.constant(0)), try operand(&nodes)))
        }
        guard !isNegative else { throw failure("expected a number after '-'") }
        switch token {
        case .real(let number):
            token = try lexer.next()
            return nodes.add(.real(number))
        case .name(let name):
            if isFormula, let function = ExpressionNodes.Function(rawValue: name), names[name] == nil {
                return try call(function, &nodes)
            }
            if name == "bcd", names[name] == nil { return try digits(&nodes) }
            return nodes.add(.part(try field(name)))
        case .sign("("):
            token = try lexer.next()
            let inner = try any(&nodes)
            guard try accept(")") else { throw failure("expected ')'") }
            return inner
        default:
            throw failure("expected a name, a number or '('")
        }
    }

    private mutating func call(
        _ function: ExpressionNodes.Function,
        _ nodes: inout ExpressionNodes
    ) throws(Failure) -> Int {
        token = try lexer.next()
        guard try accept("(") else { throw failure("expected '(' after '\(function.rawValue)'") }
        var arguments = [try any(&nodes)]
        while try accept(",") { arguments.append(try any(&nodes)) }
        guard arguments.count == function.arity else {
            let count = function.arity == 1 ? "1 argument" : "\(function.arity) arguments"
            throw failure("'\(function.rawValue)' takes \(count)")
        }
        guard try accept(")") else { throw failure("expected ')'") }
        return nodes.add(.call(function, arguments[0], arguments[arguments.count - 1]))
    }

    /// Parses `bcd(…)`.
    private mutating func digits(_ nodes: inout ExpressionNodes) throws(Failure) -> Int {
        token = try lexer.next()
        guard try accept("(") else { throw failure("expected '(' after 'bcd'") }
        let packed = try any(&nodes)
        guard try accept(")") else { throw failure("expected ')'") }
        return nodes.add(.digits(packed))
    }

    private mutating func field(_ name: String) throws(Failure) -> ExpressionNodes.Part {
        guard let field = names[name] else { throw failure(names.unknown(name)) }
        token = try lexer.next()
        if try accept(".") {
            return ExpressionNodes.Part(register: field.register, shift: try bit(of: name, field.bits), width: 1)
        }
        guard try accept("[") else { return ExpressionNodes.Part(register: field.register, shift: 0, width: 64) }
        let high = try bit(of: name, field.bits)
        guard try accept(":") else { throw failure("expected ':' and the lowest bit, as in \(name)[3:0]") }
        let low = try bit(of: name, field.bits)
        guard low <= high else { throw failure("the highest bit comes first, as in \(name)[3:0]") }
        guard try accept("]") else { throw failure("expected ']'") }
        return ExpressionNodes.Part(register: field.register, shift: low, width: high - low + 1)
    }

    private mutating func bit(of name: String, _ bits: Int64) throws(Failure) -> Int64 {
        guard case .number(let bit) = token else { throw failure("expected the number of a bit, as in \(name).0") }
        guard (0..<bits).contains(bit) else { throw failure("'\(name)' has the bits 0 to \(bits - 1)") }
        token = try lexer.next()
        return bit
    }

    private mutating func accept(_ sign: String) throws(Failure) -> Bool {
        guard token == .sign(sign) else { return false }
        token = try lexer.next()
        return true
    }

    private func failure(_ reason: String) -> Failure {
        Failure(offset: lexer.start, reason: reason)
    }
}
