import CYAML

/// A parser event of libyaml.
struct YAMLEvent {
    enum Kind: Equatable {
        case documentStart
        case streamEnd
        case scalar(String, isPlain: Bool)
        case alias(String)
        case sequenceStart(isFlow: Bool)
        case mappingStart(isFlow: Bool)
        case collectionEnd
        /// An event without content.
        case other
    }

    let kind: Kind
    let anchor: String?
    let hasTag: Bool
    let position: YAMLPosition
    let end: YAMLPosition

    init(_ raw: yaml_event_t) {
        position = unsafe YAMLPosition(raw.start_mark)
        end = unsafe YAMLPosition(raw.end_mark)
        switch unsafe raw.type {
        case YAML_SCALAR_EVENT:
            let scalar = unsafe raw.data.scalar
            kind = unsafe .scalar(Self.text(of: scalar), isPlain: scalar.style == YAML_PLAIN_SCALAR_STYLE)
            (anchor, hasTag) = unsafe (Self.string(scalar.anchor), scalar.tag != nil)
        case YAML_SEQUENCE_START_EVENT:
            let start = unsafe raw.data.sequence_start
            kind = unsafe .sequenceStart(isFlow: start.style == YAML_FLOW_SEQUENCE_STYLE)
            (anchor, hasTag) = unsafe (Self.string(start.anchor), start.tag != nil)
        case YAML_MAPPING_START_EVENT:
            let start = unsafe raw.data.mapping_start
            kind = unsafe .mappingStart(isFlow: start.style == YAML_FLOW_MAPPING_STYLE)
            (anchor, hasTag) = unsafe (Self.string(start.anchor), start.tag != nil)
        case YAML_ALIAS_EVENT:
            kind = unsafe .alias(Self.string(raw.data.alias.anchor) ?? "")
            (anchor, hasTag) = (nil, false)
        default:
            kind = unsafe Self.structure(raw.type)
            (anchor, hasTag) = (nil, false)
        }
    }

    private static func structure(_ type: yaml_event_type_t) -> Kind {
        switch type {
        case YAML_DOCUMENT_START_EVENT: .documentStart
        case YAML_STREAM_END_EVENT: .streamEnd
        case YAML_SEQUENCE_END_EVENT, YAML_MAPPING_END_EVENT: .collectionEnd
        default: .other
        }
    }

    private static func text(of scalar: yaml_event_s.__Unnamed_union_data.__Unnamed_struct_scalar) -> String {
        unsafe String(decoding: UnsafeBufferPointer(start: scalar.value, count: scalar.length), as: UTF8.self)
    }

    private static func string(_ raw: UnsafePointer<yaml_char_t>?) -> String? {
        guard let raw = unsafe raw else { return nil }
        return unsafe String(cString: raw)
    }
}

extension YAMLPosition {
    init(_ mark: yaml_mark_t) {
        self.init(line: Int(clamping: mark.line) + 1, column: Int(clamping: mark.column) + 1)
    }
}

/// A libyaml parser of a text that must outlive it.
@safe struct YAMLParser: ~Copyable {
    private let raw: UnsafeMutablePointer<yaml_parser_t>
    private let source: SourceText
    /// The start of each open collection; `nil` for a collection without brackets.
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
            guard !isOpen else { return "the '[' or '{'\(line(bracket)) is not closed" }
            return "a value, a ',' or a closing bracket is missing here; put a text with '[' or '{' into quotes"
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
