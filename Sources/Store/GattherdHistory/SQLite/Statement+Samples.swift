import GattherdModel

extension Statement {
    /// Runs with a sample's value: booleans become 1 and 0; a number that is not finite is stored as unknown.
    func run(_ value: SampleValue, at index: Int32) throws(StoreFault) {
        switch value {
        case .integer(let number): bind(number, at: index)
        case .real(let number) where number.isFinite: bind(number, at: index)
        case .boolean(let flag): bind(flag, at: index)
        case .text(let text): return try run(text: text.utf8Span.span, at: index)
        case .real, .null: bindNull(at: index)
        }
        try run()
    }
}
