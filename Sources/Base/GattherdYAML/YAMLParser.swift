import CYAML

/// A libyaml parser of a text that must outlive it.
@safe struct YAMLParser: ~Copyable {
    private let raw: UnsafeMutablePointer<yaml_parser_t>
    private let source: SourceText
    /// The starts of the collections that are open; `nil` for those without brackets.
    private var open: [YAMLPosition?] = []

    /// - Parameters:
    ///   - input: The bytes of `source`, valid as long as the parser lives.
    ///   - source: The text, for positions in errors.
    /// - Throws: ``YAMLError`` if there is no memory.
    @unsafe init(_ input: UnsafeBufferPointer<UInt8>, source: SourceText) throws(YAMLError) {
        unsafe raw = .allocate(capacity: 1)
        self.source = source
        guard unsafe yaml_parser_initialize(raw) == 1 else {
            unsafe raw.deallocate()
            throw YAMLError(position: YAMLPosition(line: 1, column: 1), problem: "out of memory")
        }
        unsafe yaml_parser_set_encoding(raw, YAML_UTF8_ENCODING)
        unsafe yaml_parser_set_input_string(raw, input.baseAddress, input.count)
    }

    deinit {
        unsafe yaml_parser_delete(raw)
        unsafe raw.deallocate()
    }

    /// Returns the next event; must not be called after the end of the stream.
    mutating func next() throws(YAMLError) -> YAMLEvent {
        var event = unsafe yaml_event_t()
        guard unsafe yaml_parser_parse(raw, &event) == 1 else { throw error() }
        defer { unsafe yaml_event_delete(&event) }
        let step = unsafe YAMLEvent(event)
        switch step.kind {
        case .sequenceStart(let isFlow), .mappingStart(let isFlow): open.append(isFlow ? step.position : nil)
        case .collectionEnd: _ = open.popLast()
        default: break
        }
        return step
    }

    private func error() -> YAMLError {
        let problem = unsafe Self.text(raw.pointee.problem) ?? "out of memory"
        if unsafe raw.pointee.error == YAML_READER_ERROR {
            let offset = unsafe Int(clamping: raw.pointee.problem_offset)
            return YAMLError(position: source.position(ofByte: offset), problem: problem)
        }
        let position = unsafe YAMLPosition(raw.pointee.problem_mark)
        if source.character(at: position) == "\t" {
            return YAMLError(position: position, problem: "a tab cannot stand here; indent with spaces")
        }
        let words = explanation(of: problem, at: position) ?? problem + context(besides: position)
        return YAMLError(position: position, problem: words)
    }

    /// A message for the frequent mistakes that libyaml describes by its own grammar.
    private func explanation(of problem: String, at position: YAMLPosition) -> String? {
        let line = { (start: YAMLPosition) in start.line == position.line ? "" : " of line \(start.line)" }
        if problem == "did not find expected node content" || problem.hasPrefix("did not find expected ','"),
            let bracket = open.last ?? nil
        {
            let isOpen = source.character(at: position) == nil || position.line > bracket.line
            return isOpen
                ? "the '[' or '{'\(line(bracket)) is not closed" : "a value, a ',' or a closing bracket is missing here"
        }
        switch problem {
        case "did not find expected key", "did not find expected '-' indicator":
            return "this line is not indented as those before it"
        case "could not find expected ':'": return "a key needs a ':' and a space after it"
        case "mapping values are not allowed in this context":
            return "a ':' cannot stand here; correct the indentation, or put the text into quotes"
        case "found unexpected end of stream":
            return unsafe "the quote\(line(YAMLPosition(raw.pointee.context_mark))) is not closed"
        case "found character that cannot start any token":
            return "a text cannot begin with this character; put it into quotes"
        default: return nil
        }
    }

    /// Returns the construct in which libyaml failed, and the line where it begins.
    private func context(besides position: YAMLPosition) -> String {
        guard let context = unsafe Self.text(raw.pointee.context) else { return "" }
        let start = unsafe YAMLPosition(raw.pointee.context_mark)
        return " " + context + (start.line == position.line ? "" : " that begins in line \(start.line)")
    }

    private static func text(_ raw: UnsafePointer<CChar>?) -> String? {
        guard let raw = unsafe raw else { return nil }
        return unsafe String(cString: raw)
    }
}
