import GattherdYAML

/// The names of earlier fields.
struct FieldNames {
    struct Field {
        let register: Int
        let bits: Int64
        /// The width of a signed field; `nil` for others, and if its definitions differ.
        var signedBits: Int?
    }

    /// The register of `octets`, the payload's length.
    static let octetsRegister = 0
    /// The register of `left`, the number of remaining bytes.
    static let leftRegister = 1
    /// The first register of shared values.
    static let firstShared = 2
    private static let builtIn: [String: Field] = [
        "octets": Field(register: octetsRegister, bits: 16), "left": Field(register: leftRegister, bits: 16),
    ]

    private var fields: [String: Field] = [:]
    private var order: [String] = []
    /// The registers of lists.
    private var lists: [String: Int] = [:]

    /// The number of registers.
    var count: Int { Self.builtIn.count + order.count + lists.count }

    /// The field of a name; fields of the profile hide built-in ones.
    subscript(name: String) -> Field? { fields[name] ?? Self.builtIn[name] }

    func has(_ name: String) -> Bool { fields[name] != nil }

    /// Adds or redefines `name` and returns its register.
    mutating func add(_ name: String, bits: Int64, signedBits: Int? = nil) -> Int {
        let known = fields[name]
        let register = known?.register ?? count
        if known == nil { order.append(name) }
        let isSame = known.map { $0.signedBits == signedBits } ?? true
        fields[name] = Field(register: register, bits: bits, signedBits: isSame ? signedBits : nil)
        return register
    }

    /// Returns the width of the signed field in a register; `nil` for another field.
    func signedBits(in register: Int) -> Int? { fields.values.first { $0.register == register }?.signedBits }

    /// Returns the register of a list's last value, which no expression can name.
    mutating func addList(_ name: String) -> Int {
        let register = lists[name] ?? count
        lists[name] = register
        return register
    }

    /// Returns the error message for an unknown name.
    func unknown(_ name: String) -> String {
        if let nearest = Spelling.nearest(to: name, among: order + Self.builtIn.keys.sorted()) {
            return "no earlier field is called '\(name)'; did you mean '\(nearest)'?"
        }
        let known = order.isEmpty ? "none has a name" : "there are \(order.joined(separator: ", "))"
        return "no earlier field is called '\(name)'; \(known)"
    }
}
