import Glibc

/// The expressions of a characteristic as a flat tree: nodes refer to others by index.
struct ExpressionNodes: Sendable {
    enum Comparison: Sendable {
        case equal
        case notEqual
        case less
        case lessOrEqual
        case greater
        case greaterOrEqual
    }

    enum Arithmetic: Sendable {
        case plus
        case minus
        case times
        case over
        case modulo
    }

    /// A function of formulas.
    enum Function: String, Sendable, CaseIterable {
        case sqrt
        case exp
        case ln
        case pow
        case min
        case max

        /// The number of arguments.
        var arity: Int {
            switch self {
            case .sqrt, .exp, .ln: 1
            case .pow, .min, .max: 2
            }
        }
    }

    enum Node: Sendable {
        case constant(Int64)
        /// A number with decimals, only in formulas.
        case real(Double)
        /// A function with one or two arguments, only in formulas; with one argument both indices are the same.
        case call(Function, Int, Int)
        case part(Part)
        /// The number whose decimal digits are the nibbles of a node.
        case digits(Int)
        case not(Int)
        case and(Int, Int)
        case or(Int, Int)
        case compare(Comparison, Int, Int)
        /// The comparison of a whole field with a constant: the condition of nearly all steps that have one.
        case equals(register: Int, Int64)
        case compute(Arithmetic, Int, Int)
    }

    /// An earlier field, or a range of its bits.
    struct Part: Hashable, Sendable {
        let register: Int
        let shift: Int64
        /// The width in bits; 64 for the whole field.
        let width: Int64
        /// True if the highest bit is a sign.
        var isSigned = false

        func value(_ registers: [Int64]) -> Int64 {
            let unused = 64 - width
            let bits = (registers[register] >> shift) << unused
            return isSigned ? bits >> unused : Int64(bitPattern: UInt64(bitPattern: bits) >> UInt64(unused))
        }
    }

    private var nodes: [Node] = []

    /// Appends a node and returns its index.
    mutating func add(_ node: Node) -> Int {
        nodes.append(equality(node) ?? node)
        return nodes.count - 1
    }

    /// Returns the simpler form of a comparison of a whole field with a constant.
    private func equality(_ node: Node) -> Node? {
        guard case .compare(.equal, let left, let right) = node, case .part(let part) = nodes[left],
            case .constant(let number) = nodes[right], part.shift == 0, part.width == 64
        else { return nil }
        return .equals(register: part.register, number)
    }

    /// Returns the field or bit range at `position`; `nil` for another node.
    func part(at position: Int) -> Part? {
        if case .part(let part) = nodes[position] { part } else { nil }
    }

    /// Returns true if the node at `position` is an integer literal, or a comparison of two, as in `f & 0x0F == 3`.
    func isConstant(_ position: Int) -> Bool {
        switch nodes[position] {
        case .constant: true
        case .compare(_, let left, let right): isConstant(left) && isConstant(right)
        default: false
        }
    }

    /// True if the value at `position` is always 0 or 1.
    func isBoolean(at position: Int) -> Bool {
        switch nodes[position] {
        case .constant, .real, .call, .compute, .digits: false
        case .part(let part): part.width == 1
        case .not, .and, .or, .compare, .equals: true
        }
    }

    /// Returns the value of a node.
    ///
    /// Non-zero is true, operators short-circuit, and overflows are clamped.
    func value(of position: Int, _ registers: [Int64]) -> Int64 {
        switch nodes[position] {
        case .constant(let number): number
        case .real, .call: 0
        case .part(let part): part.value(registers)
        case .digits(let inner): Self.number(ofDigits: value(of: inner, registers))
        case .not(let inner): value(of: inner, registers) == 0 ? 1 : 0
        case .and(let left, let right):
            value(of: left, registers) != 0 && value(of: right, registers) != 0 ? 1 : 0
        case .or(let left, let right):
            value(of: left, registers) != 0 || value(of: right, registers) != 0 ? 1 : 0
        case .compare(let comparison, let left, let right):
            comparison.holds(value(of: left, registers), value(of: right, registers)) ? 1 : 0
        case .equals(let register, let number): registers[register] == number ? 1 : 0
        case .compute(let arithmetic, let left, let right):
            arithmetic.result(value(of: left, registers), value(of: right, registers))
        }
    }
}

extension ExpressionNodes {
    /// Returns the value of a node of a formula, which may be infinite or not a number.
    func realValue(of position: Int, _ registers: [Int64]) -> Double {
        switch nodes[position] {
        case .constant(let number): Double(number)
        case .real(let number): number
        case .part(let part): Double(part.value(registers))
        case .digits(let inner): Double(Self.number(ofDigits: Int64(clamping: realValue(of: inner, registers))))
        case .call(let function, let first, let second):
            function.result(realValue(of: first, registers), realValue(of: second, registers))
        case .not(let inner): realValue(of: inner, registers) == 0 ? 1 : 0
        case .and(let left, let right):
            realValue(of: left, registers) != 0 && realValue(of: right, registers) != 0 ? 1 : 0
        case .or(let left, let right):
            realValue(of: left, registers) != 0 || realValue(of: right, registers) != 0 ? 1 : 0
        case .compare(let comparison, let left, let right):
            comparison.holds(realValue(of: left, registers), realValue(of: right, registers)) ? 1 : 0
        case .equals(let register, let number): registers[register] == number ? 1 : 0
        case .compute(let arithmetic, let left, let right):
            arithmetic.realResult(realValue(of: left, registers), realValue(of: right, registers))
        }
    }
}

extension ExpressionNodes {
    /// Returns 1234 for 0x1234; −1 if a nibble is no decimal digit.
    fileprivate static func number(ofDigits packed: Int64) -> Int64 {
        var (rest, number, power) = (UInt64(bitPattern: packed), Int64(0), Int64(1))
        while rest > 0 {
            let digit = Int64(rest & 0xF)
            guard digit <= 9 else { return -1 }
            number += digit * power
            rest >>= 4
            if rest > 0 { power *= 10 }
        }
        return number
    }
}

extension Int64 {
    /// The nearest integer towards 0; 0 for no number.
    fileprivate init(clamping number: Double) {
        let bounded = Swift.min(Swift.max(number, -0x1p62), 0x1p62)
        self = bounded.isNaN ? 0 : Int64(bounded)
    }
}

extension ExpressionNodes.Function {
    fileprivate func result(_ first: Double, _ second: Double) -> Double {
        switch self {
        case .sqrt: first.squareRoot()
        case .exp: Glibc.exp(first)
        case .ln: log(first)
        case .pow: Glibc.pow(first, second)
        case .min: Swift.min(first, second)
        case .max: Swift.max(first, second)
        }
    }
}

extension ExpressionNodes.Comparison {
    fileprivate func holds<Number: Comparable>(_ left: Number, _ right: Number) -> Bool {
        switch self {
        case .equal: left == right
        case .notEqual: left != right
        case .less: left < right
        case .lessOrEqual: left <= right
        case .greater: left > right
        case .greaterOrEqual: left >= right
        }
    }
}

extension ExpressionNodes.Arithmetic {
    /// Returns the clamped result; division by 0 gives 0.
    fileprivate func result(_ left: Int64, _ right: Int64) -> Int64 {
        let (value, overflow) =
            switch self {
            case .plus: left.addingReportingOverflow(right)
            case .minus: left.subtractingReportingOverflow(right)
            case .times: left.multipliedReportingOverflow(by: right)
            case .over: right == 0 ? (0, false) : left.dividedReportingOverflow(by: right)
            case .modulo: right == 0 ? (0, false) : left.remainderReportingOverflow(dividingBy: right)
            }
        return overflow ? limit(left, right) : value
    }

    fileprivate func realResult(_ left: Double, _ right: Double) -> Double {
        switch self {
        case .plus: left + right
        case .minus: left - right
        case .times: left * right
        case .over: left / right
        case .modulo: left.truncatingRemainder(dividingBy: right)
        }
    }

    /// Returns the bound that an overflow is clamped to.
    private func limit(_ left: Int64, _ right: Int64) -> Int64 {
        switch self {
        case .plus, .minus: left < 0 ? .min : .max
        case .times: (left < 0) == (right < 0) ? .max : .min
        case .over: .max
        case .modulo: 0
        }
    }
}
