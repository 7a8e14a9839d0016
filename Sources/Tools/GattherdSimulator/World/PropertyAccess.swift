import GattherdDBus

/// The interface `org.freedesktop.DBus.Properties` of all objects.
final class PropertyAccess {
    private let world: World
    private let components: BlueZComponents

    init(_ world: World, _ components: BlueZComponents) {
        self.world = world
        self.components = components
    }

    func answer(_ call: MethodCall, _ node: Node) {
        let texts = call.arguments.map { $0.string ?? "" }
        guard let interface = components.objects.interfaces(of: node).first(where: { $0.name == texts.first }) else {
            return world.effects.fail(call, .noSuchInterface(texts.first ?? ""))
        }
        guard call.member != "GetAll" else { return world.effects.reply(call, .properties(interface.properties)) }
        let property = interface.properties.first { $0.name == texts[1] }
        if call.member == "Set" {
            set(call, node, texts[1], from: property?.value, to: call.arguments[2].unwrapped)
        } else if let property {
            world.effects.reply(call, .variant(property.value))
        } else {
            world.effects.fail(call, .noSuchProperty(texts[1]))
        }
    }

    private func set(_ call: MethodCall, _ node: Node, _ name: String, from old: DBusValue?, to new: DBusValue) {
        guard let old else { return world.effects.fail(call, .unknownProperty(name)) }
        guard Self.isWritable(node, name) else { return world.effects.fail(call, .readOnly(name)) }
        guard old.signature == new.signature else { return world.effects.fail(call, .invalidSignature(name)) }
        switch node {
        case .adapter(let index): setAdapter(index, Property(name, new), isNew: old != new)
        case .device(let key): setDevice(key, Property(name, new), isNew: old != new)
        default: break
        }
        world.effects.reply(call)
    }

    private static func isWritable(_ node: Node, _ name: String) -> Bool {
        switch node {
        case .adapter:
            ["Powered", "Discoverable", "DiscoverableTimeout", "Pairable", "PairableTimeout", "Alias"].contains(name)
        case .device: ["Trusted", "Blocked", "Alias"].contains(name)
        default: false
        }
    }

    private func setAdapter(_ index: Int, _ property: Property, isNew: Bool) {
        switch (property.name, property.value) {
        case ("Powered", .boolean(let isOn)): return components.adapters.setPower(index, isOn)
        case ("Pairable", .boolean(let isPairable)): world.adapters[index].isPairable = isPairable
        case ("Alias", .string(let alias)): world.adapters[index].alias = alias.isEmpty ? nil : alias
        default: return
        }
        if isNew { world.signal(adapter: index, [property]) }
    }

    private func setDevice(_ key: DeviceKey, _ property: Property, isNew: Bool) {
        guard isNew else { return }
        world.signal(key, [property])
        switch (property.name, property.value) {
        case ("Trusted", .boolean(let isTrusted)):
            world.devices[key]?.isTrusted = isTrusted
            components.registry.armExpiry(key)
        case ("Blocked", .boolean(let isBlocked)):
            world.devices[key]?.isBlocked = isBlocked
            if isBlocked { components.links.end(key, .blocked) } else { components.attempts.resume(key) }
        case ("Alias", .string(let alias)): world.devices[key]?.alias = alias.isEmpty ? nil : alias
        default: break
        }
    }
}
