/// Conditions of all fields of a characteristic, flat: a node names others by their position.
struct ConditionNodes: Sendable {
    enum Comparison: Sendable {
        case equal
        case notEqual
        case less
        case lessOrEqual
        case greater
        case greaterOrEqual
    }

    enum Node: Sendable {
        case constant(Int64)
        /// The bits `shift`… of a register, `mask` wide.
        case bits(Operand)
        case not(Int)
        case and(Int, Int)
        case or(Int, Int)
        case compare(Comparison, Int, Int)
    }

    /// A part of an earlier field.
    struct Operand: Hashable, Sendable {
        let register: Int
        let shift: Int64
        /// All ones for the whole field.
        let mask: Int64

        func value(_ registers: [Int64]) -> Int64 { (registers[register] >> shift) & mask }
    }

    private var nodes: [Node] = []

    /// Takes a node in and gives its position.
    mutating func add(_ node: Node) -> Int {
        nodes.append(node)
        return nodes.count - 1
    }

    /// True is any number but 0; what is not needed is not looked at.
    func value(of position: Int, _ registers: [Int64]) -> Int64 {
        switch nodes[position] {
        case .constant(let number): number
        case .bits(let operand): operand.value(registers)
        case .not(let inner): value(of: inner, registers) == 0 ? 1 : 0
        case .and(let left, let right):
            value(of: left, registers) != 0 && value(of: right, registers) != 0 ? 1 : 0
        case .or(let left, let right):
            value(of: left, registers) != 0 || value(of: right, registers) != 0 ? 1 : 0
        case .compare(let comparison, let left, let right):
            comparison.holds(value(of: left, registers), value(of: right, registers)) ? 1 : 0
        }
    }
}

extension ConditionNodes.Comparison {
    fileprivate func holds(_ left: Int64, _ right: Int64) -> Bool {
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
