import GattherdConfig

/// The fields that came before and can be spoken of.
struct FieldNames {
    struct Field {
        let register: Int
        let bits: Int64
    }

    /// How many octets the payload has: `octets`.
    static let octetsRegister = 0
    /// How many of them no field has taken yet: `left`.
    static let leftRegister = 1
    /// The first of the values that all characteristics of a profile have in common.
    static let firstShared = 2
    private static let given: [String: Field] = [
        "octets": Field(register: octetsRegister, bits: 16), "left": Field(register: leftRegister, bits: 16),
    ]

    private var fields: [String: Field] = [:]
    private var order: [String] = []

    /// How many registers there are.
    var count: Int { Self.given.count + order.count }

    /// A field of the profile; those that every payload has give way to it.
    subscript(name: String) -> Field? { fields[name] ?? Self.given[name] }

    func has(_ name: String) -> Bool { fields[name] != nil }

    /// Makes `name` known, or knows it with another width from now on; gives its register.
    mutating func add(_ name: String, bits: Int64) -> Int {
        let register = fields[name]?.register ?? count
        if fields[name] == nil { order.append(name) }
        fields[name] = Field(register: register, bits: bits)
        return register
    }

    /// What to say about a name that is not known.
    func unknown(_ name: String) -> String {
        if let nearest = Spelling.nearest(to: name, among: order + Self.given.keys.sorted()) {
            return "no earlier field is called '\(name)'; did you mean '\(nearest)'?"
        }
        let known = order.isEmpty ? "none has a name" : "there are \(order.joined(separator: ", "))"
        return "no earlier field is called '\(name)'; \(known)"
    }
}
