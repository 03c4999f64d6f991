package streamsql;

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.zip.ZipEntry;
import java.util.zip.ZipInputStream;
import java.util.zip.ZipOutputStream;
import org.apache.xbean.asm9.ClassReader;
import org.apache.xbean.asm9.ClassVisitor;
import org.apache.xbean.asm9.ClassWriter;
import org.apache.xbean.asm9.Handle;
import org.apache.xbean.asm9.Label;
import org.apache.xbean.asm9.MethodVisitor;
import org.apache.xbean.asm9.Opcodes;
import org.apache.xbean.asm9.Type;

/**
 * Writes a jar for the start-up cache with classes of Spark and Scala whose lambdas are classes of their own: Java makes the
 * class of a serializable lambda when its call is first reached, some 5,300 of them until Spark's first row, and cannot store
 * these in its cache. Only the calls of LambdaMetafactory.altMetafactory are replaced, by that of a constructor of a class
 * with the same interfaces, which calls the same method.
 */
public final class ScalaLambdas {
    private ScalaLambdas() {}

    /** How such a lambda is serialized: by its fields when all of Spark is in this JVM, else as Java's own are. */
    public static final class Serialized {
        private Serialized() {}

        public static final boolean BY_FIELDS = Boolean.getBoolean("streamsql.oneJvm");
    }

    /**
     * arguments: the jar to write, then jars whose classes are copied into it, without their signatures, with which Java
     * stores no class in its cache. stdin: the names of the classes to write again, one in a line.
     */
    public static void main(String[] arguments) throws IOException {
        Map files = new TreeMap();
        BufferedReader names = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String name = names.readLine(); name != null; name = names.readLine()) {
            InputStream stream = ClassLoader.getSystemResourceAsStream(name.replace('.', '/') + ".class");
            if (stream == null) continue;
            try {
                rewrite(stream.readAllBytes(), files);
            } finally {
                stream.close();
            }
        }
        for (int i = 1; i < arguments.length; i++) copy(arguments[i], files);
        ZipOutputStream jar = new ZipOutputStream(new BufferedOutputStream(new FileOutputStream(arguments[0])));
        try {
            jar.setLevel(1);
            for (Object each : files.entrySet()) {
                Map.Entry file = (Map.Entry) each;
                jar.putNextEntry(new ZipEntry((String) file.getKey()));
                jar.write((byte[]) file.getValue());
            }
        } finally {
            jar.close();
        }
    }

    private static void copy(String jar, Map files) throws IOException {
        ZipInputStream entries = new ZipInputStream(new BufferedInputStream(new FileInputStream(jar)));
        try {
            for (ZipEntry entry = entries.getNextEntry(); entry != null; entry = entries.getNextEntry()) {
                String name = entry.getName();
                if (name.endsWith(".class") && !name.startsWith("META-INF")) files.put(name, entries.readAllBytes());
            }
        } finally {
            entries.close();
        }
    }

    /** Add the class and the classes of its lambdas to files, by their path; nothing where it has no such lambda. */
    static void rewrite(byte[] given, Map files) {
        ClassReader reader = new ClassReader(given);
        Set own = new HashSet();
        reader.accept(new Methods(own), ClassReader.SKIP_CODE | ClassReader.SKIP_DEBUG);
        Map lambdas = new HashMap();
        ClassWriter writer = new ClassWriter(0);
        reader.accept(new Rewriter(writer, reader.getClassName(), own, lambdas), 0);
        if (lambdas.isEmpty()) return;
        files.put(reader.getClassName() + ".class", writer.toByteArray());
        files.putAll(lambdas);
    }

    /** Collects the methods that another class of the package may call. */
    private static final class Methods extends ClassVisitor {
        private final Set methods;

        Methods(Set methods) {
            super(Opcodes.ASM9);
            this.methods = methods;
        }

        public MethodVisitor visitMethod(int access, String name, String type, String signature, String[] thrown) {
            if ((access & Opcodes.ACC_PRIVATE) == 0) methods.add(name + type);
            return null;
        }
    }

    private static final class Rewriter extends ClassVisitor {
        final String owner;
        final Set methods;
        final Map lambdas;

        Rewriter(ClassVisitor next, String owner, Set methods, Map lambdas) {
            super(Opcodes.ASM9, next);
            this.owner = owner;
            this.methods = methods;
            this.lambdas = lambdas;
        }

        public MethodVisitor visitMethod(int access, String name, String type, String signature, String[] thrown) {
            return new Calls(super.visitMethod(access, name, type, signature, thrown), this);
        }
    }

    private static final class Calls extends MethodVisitor {
        private final Rewriter rewriter;

        Calls(MethodVisitor next, Rewriter rewriter) {
            super(Opcodes.ASM9, next);
            this.rewriter = rewriter;
        }

        public void visitInvokeDynamicInsn(String name, String type, Handle bootstrap, Object[] arguments) {
            if (bootstrap.getName().equals("altMetafactory")
                    && bootstrap.getOwner().equals("java/lang/invoke/LambdaMetafactory")) {
                String lambda = rewriter.owner + "$$Lambda$" + rewriter.lambdas.size();
                byte[] code = classOf(lambda, name, type, arguments, rewriter);
                if (code != null) {
                    rewriter.lambdas.put(lambda + ".class", code);
                    super.visitMethodInsn(Opcodes.INVOKESTATIC, lambda, "lambda", type, false);
                    return;
                }
            }
            super.visitInvokeDynamicInsn(name, type, bootstrap, arguments);
        }
    }

    /** The class of a lambda; null where more than casts of references lies between its interface and its method. */
    private static byte[] classOf(String lambda, String name, String type, Object[] arguments, Rewriter rewriter) {
        Handle target = (Handle) arguments[1];
        if (target.getTag() != Opcodes.H_INVOKESTATIC
                || !target.getOwner().equals(rewriter.owner)
                || !rewriter.methods.contains(target.getName() + target.getDesc())) return null;
        int flags = ((Integer) arguments[3]).intValue();
        int next = 4;
        String[] markers = new String[(flags & 2) == 0 ? 0 : ((Integer) arguments[next++]).intValue()];
        for (int i = 0; i < markers.length; i++) markers[i] = ((Type) arguments[next++]).getInternalName();
        Set methods = new LinkedHashSet();
        methods.add(((Type) arguments[0]).getDescriptor());
        for (int i = (flags & 4) == 0 ? 0 : ((Integer) arguments[next++]).intValue(); i > 0; i--) {
            methods.add(((Type) arguments[next++]).getDescriptor());
        }
        Type[] captured = Type.getArgumentTypes(type);
        for (Object method : methods) if (!castable(captured, (String) method, target.getDesc())) return null;

        Set interfaces = new LinkedHashSet();
        interfaces.add(Type.getReturnType(type).getInternalName());
        interfaces.add("java/io/Serializable");
        interfaces.addAll(Arrays.asList(markers));
        ClassWriter writer = new ClassWriter(ClassWriter.COMPUTE_MAXS);
        writer.visit(Opcodes.V1_8, Opcodes.ACC_FINAL | Opcodes.ACC_SUPER, lambda, null, "java/lang/Object", (String[]) interfaces.toArray(new String[0]));
        int hidden = Opcodes.ACC_PRIVATE | Opcodes.ACC_FINAL;
        writer.visitField(hidden | Opcodes.ACC_STATIC, "serialVersionUID", "J", null, Long.valueOf(0L));
        for (int i = 0; i < captured.length; i++) {
            writer.visitField(hidden, "c" + i, captured[i].getDescriptor(), null, null);
        }
        String fields = Type.getMethodDescriptor(Type.VOID_TYPE, captured);
        MethodVisitor code = writer.visitMethod(Opcodes.ACC_PRIVATE, "<init>", fields, null, null);
        code.visitCode();
        code.visitVarInsn(Opcodes.ALOAD, 0);
        code.visitMethodInsn(Opcodes.INVOKESPECIAL, "java/lang/Object", "<init>", "()V", false);
        for (int i = 0, slot = 1; i < captured.length; slot += captured[i++].getSize()) {
            code.visitVarInsn(Opcodes.ALOAD, 0);
            code.visitVarInsn(captured[i].getOpcode(Opcodes.ILOAD), slot);
            code.visitFieldInsn(Opcodes.PUTFIELD, lambda, "c" + i, captured[i].getDescriptor());
        }
        end(code, Opcodes.RETURN);

        boolean single = captured.length == 0; // as Java does: one object for each call
        if (single) {
            writer.visitField(hidden | Opcodes.ACC_STATIC, "single", "L" + lambda + ";", null, null);
            code = writer.visitMethod(Opcodes.ACC_STATIC, "<clinit>", "()V", null, null);
            code.visitCode();
            code.visitTypeInsn(Opcodes.NEW, lambda);
            code.visitInsn(Opcodes.DUP);
            code.visitMethodInsn(Opcodes.INVOKESPECIAL, lambda, "<init>", fields, false);
            code.visitFieldInsn(Opcodes.PUTSTATIC, lambda, "single", "L" + lambda + ";");
            end(code, Opcodes.RETURN);
        }
        code = writer.visitMethod(Opcodes.ACC_STATIC, "lambda", type, null, null);
        code.visitCode();
        if (single) {
            code.visitFieldInsn(Opcodes.GETSTATIC, lambda, "single", "L" + lambda + ";");
        } else {
            code.visitTypeInsn(Opcodes.NEW, lambda);
            code.visitInsn(Opcodes.DUP);
            for (int i = 0, slot = 0; i < captured.length; slot += captured[i++].getSize()) {
                code.visitVarInsn(captured[i].getOpcode(Opcodes.ILOAD), slot);
            }
            code.visitMethodInsn(Opcodes.INVOKESPECIAL, lambda, "<init>", fields, false);
        }
        end(code, Opcodes.ARETURN);

        for (Object method : methods) call(writer, lambda, captured, name, (String) method, target);
        serialize(writer, lambda, type, name, captured, arguments, rewriter.owner);
        if (single) {
            code = writer.visitMethod(Opcodes.ACC_PRIVATE, "readResolve", "()Ljava/lang/Object;", null, null);
            code.visitCode();
            code.visitFieldInsn(Opcodes.GETSTATIC, lambda, "single", "L" + lambda + ";");
            end(code, Opcodes.ARETURN);
        }
        writer.visitEnd();
        return writer.toByteArray();
    }

    /** The method of an interface, which casts what it is given and calls the target. */
    private static void call(ClassWriter writer, String lambda, Type[] captured, String name, String method, Handle target) {
        MethodVisitor code = writer.visitMethod(Opcodes.ACC_PUBLIC, name, method, null, null);
        code.visitCode();
        for (int i = 0; i < captured.length; i++) {
            code.visitVarInsn(Opcodes.ALOAD, 0);
            code.visitFieldInsn(Opcodes.GETFIELD, lambda, "c" + i, captured[i].getDescriptor());
        }
        Type[] given = Type.getArgumentTypes(method);
        Type[] wanted = Type.getArgumentTypes(target.getDesc());
        for (int i = 0, slot = 1; i < given.length; slot += given[i++].getSize()) {
            code.visitVarInsn(given[i].getOpcode(Opcodes.ILOAD), slot);
            cast(code, given[i], wanted[captured.length + i]);
        }
        code.visitMethodInsn(Opcodes.INVOKESTATIC, target.getOwner(), target.getName(), target.getDesc(), target.isInterface());
        Type result = Type.getReturnType(method);
        cast(code, Type.getReturnType(target.getDesc()), result);
        end(code, result.getOpcode(Opcodes.IRETURN));
    }

    /** writeReplace: this object, or the SerializedLambda of Java's own class, which any other Spark can read. */
    private static void serialize(
            ClassWriter writer, String lambda, String type, String name, Type[] captured, Object[] arguments, String owner) {
        Handle target = (Handle) arguments[1];
        MethodVisitor code = writer.visitMethod(Opcodes.ACC_PRIVATE, "writeReplace", "()Ljava/lang/Object;", null, null);
        code.visitCode();
        code.visitFieldInsn(Opcodes.GETSTATIC, "streamsql/ScalaLambdas$Serialized", "BY_FIELDS", "Z");
        Label other = new Label();
        code.visitJumpInsn(Opcodes.IFEQ, other);
        code.visitVarInsn(Opcodes.ALOAD, 0);
        code.visitInsn(Opcodes.ARETURN);
        code.visitLabel(other);
        code.visitFrame(Opcodes.F_SAME, 0, null, 0, null);
        code.visitTypeInsn(Opcodes.NEW, "java/lang/invoke/SerializedLambda");
        code.visitInsn(Opcodes.DUP);
        code.visitLdcInsn(Type.getObjectType(owner));
        code.visitLdcInsn(Type.getReturnType(type).getInternalName());
        code.visitLdcInsn(name);
        code.visitLdcInsn(((Type) arguments[0]).getDescriptor());
        code.visitIntInsn(Opcodes.BIPUSH, target.getTag());
        code.visitLdcInsn(target.getOwner());
        code.visitLdcInsn(target.getName());
        code.visitLdcInsn(target.getDesc());
        code.visitLdcInsn(((Type) arguments[2]).getDescriptor());
        code.visitIntInsn(Opcodes.SIPUSH, captured.length);
        code.visitTypeInsn(Opcodes.ANEWARRAY, "java/lang/Object");
        for (int i = 0; i < captured.length; i++) {
            code.visitInsn(Opcodes.DUP);
            code.visitIntInsn(Opcodes.SIPUSH, i);
            code.visitVarInsn(Opcodes.ALOAD, 0);
            code.visitFieldInsn(Opcodes.GETFIELD, lambda, "c" + i, captured[i].getDescriptor());
            if (!reference(captured[i])) {
                String box = "java/lang/" + BOXES[captured[i].getSort()];
                String method = "(" + captured[i].getDescriptor() + ")L" + box + ";";
                code.visitMethodInsn(Opcodes.INVOKESTATIC, box, "valueOf", method, false);
            }
            code.visitInsn(Opcodes.AASTORE);
        }
        String string = "Ljava/lang/String;";
        String fields = "(Ljava/lang/Class;" + string + string + string + "I" + string + string + string + string + "[Ljava/lang/Object;)V";
        code.visitMethodInsn(Opcodes.INVOKESPECIAL, "java/lang/invoke/SerializedLambda", "<init>", fields, false);
        end(code, Opcodes.ARETURN);
    }

    /** By the sort of a primitive type (Type.getSort), its class. */
    private static final String[] BOXES = {
        null, "Boolean", "Character", "Byte", "Short", "Integer", "Float", "Long", "Double"
    };

    private static void end(MethodVisitor code, int instruction) {
        code.visitInsn(instruction);
        code.visitMaxs(0, 0);
        code.visitEnd();
    }

    private static boolean castable(Type[] captured, String method, String target) {
        Type[] given = Type.getArgumentTypes(method);
        Type[] wanted = Type.getArgumentTypes(target);
        if (wanted.length != captured.length + given.length) return false;
        for (int i = 0; i < captured.length; i++) if (!captured[i].equals(wanted[i])) return false;
        for (int i = 0; i < given.length; i++) if (!castable(given[i], wanted[captured.length + i])) return false;
        return castable(Type.getReturnType(target), Type.getReturnType(method));
    }

    private static boolean castable(Type from, Type to) {
        return from.equals(to) || (reference(from) && reference(to));
    }

    private static boolean reference(Type type) {
        return type.getSort() == Type.OBJECT || type.getSort() == Type.ARRAY;
    }

    private static void cast(MethodVisitor code, Type from, Type to) {
        if (!from.equals(to) && !to.getInternalName().equals("java/lang/Object")) {
            code.visitTypeInsn(Opcodes.CHECKCAST, to.getInternalName());
        }
    }
}
