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
