/* `Again` of again.py in C: the way of a launch on tensors like those of an earlier one.

   tensors → torch's guards recognize them → addresses and stream → the launch kept for these
           → cuLaunchKernelEx by its address, while other threads may run

   What it does not recognize it leaves alone, and says so; Python then goes the long way. It calls
   torch by functions for Python, and needs no header of torch or CUDA. An object never changes
   after it was made, so that threads may share it. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#ifdef Py_GIL_DISABLED
#error "free-threaded Python launches by again.py: the lock keeps what is looked up here alive"
#endif

#define INTERFACE 2 /* that of again.py */

/* CUresult cuLaunchKernelEx(config, function, parameters, extra) */
typedef int (*LaunchKernel)(const void *, void *, void **, void **);

typedef struct {
    PyObject_HEAD
    LaunchKernel launch;
    void *function;
    PyObject *launches;
    PyObject *failed;
    PyObject *recognizes;
    PyObject *recognizes_inputs;
    PyObject *make;
    PyObject *captures;
    PyObject *stream_of;
    PyObject *index;
    PyObject *workspaces;
    PyObject *count_up;
} Again;

static PyObject *data_ptr; /* the name of the method */

/* 1, 0, or -1 with an exception; takes the reference. */
static int truth_of(PyObject *found)
{
    int truth = found == NULL ? -1 : PyObject_IsTrue(found);
    Py_XDECREF(found);
    return truth;
}

/* The stream's handle, a new reference; NULL where Python must find it, or with an exception. */
static PyObject *stream_for(Again *self, PyObject *stream)
{
    if (stream == Py_None && self->stream_of != Py_None) {
        if (self->captures != Py_None && truth_of(PyObject_CallNoArgs(self->captures)))
            return NULL;
        return PyObject_CallOneArg(self->stream_of, self->index);
    }
    return PyLong_CheckExact(stream) ? Py_NewRef(stream) : NULL;
}

/* The addresses of the workspaces, a new reference to a tuple. */
static PyObject *workspaces_for(Again *self, PyObject *stream)
{
    if (self->workspaces == Py_None)
        return PyTuple_New(0);
    PyObject *found = PyObject_CallOneArg(self->workspaces, stream);
    if (found != NULL && !PyTuple_Check(found)) {
        PyErr_SetString(PyExc_TypeError, "workspaces must be a tuple");
        Py_CLEAR(found);
    }
    return found;
}

/* (address, …, workspace, …, stream) */
static PyObject *key_of(PyObject *tensors, PyObject *own, PyObject *stream)
{
    Py_ssize_t count = PyTuple_GET_SIZE(tensors), more = PyTuple_GET_SIZE(own);
    PyObject *key = PyTuple_New(count + more + 1);
    if (key == NULL)
        return NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *address = PyObject_CallMethodNoArgs(PyTuple_GET_ITEM(tensors, i), data_ptr);
        if (address == NULL) {
            Py_DECREF(key);
            return NULL;
        }
        PyTuple_SET_ITEM(key, i, address);
    }
    for (Py_ssize_t i = 0; i < more; i++)
        PyTuple_SET_ITEM(key, count + i, Py_NewRef(PyTuple_GET_ITEM(own, i)));
    PyTuple_SET_ITEM(key, count + more, Py_NewRef(stream));
    return key;
}

/* What is kept for these tensors on this stream, a new reference; NULL where nothing is. */
static PyObject *find(Again *self, PyObject *tensors, PyObject *stream)
{
    PyObject *known = NULL, *own = NULL, *key = NULL;
    PyObject *handle = stream_for(self, stream);
    if (handle != NULL)
        own = workspaces_for(self, handle);
    if (own != NULL)
        key = key_of(tensors, own, handle);
    if (key != NULL)
        known = Py_XNewRef(PyDict_GetItemWithError(self->launches, key));
    Py_XDECREF(key);
    Py_XDECREF(own);
    Py_XDECREF(handle);
    return known;
}

/* Launches; 1, or -1 with an exception. `known` is (parameters, config, …), both as addresses. */
static int launch_known(Again *self, PyObject *known)
{
    if (!PyTuple_Check(known) || PyTuple_GET_SIZE(known) < 2) {
        PyErr_SetString(PyExc_TypeError, "a launch must be kept as a tuple of addresses");
        return -1;
    }
    void *parameters = PyLong_AsVoidPtr(PyTuple_GET_ITEM(known, 0));
    void *config = PyLong_AsVoidPtr(PyTuple_GET_ITEM(known, 1));
    int status;
    if (PyErr_Occurred())
        return -1;
    Py_BEGIN_ALLOW_THREADS
    status = self->launch(config, self->function, parameters, NULL);
    Py_END_ALLOW_THREADS
    if (status == 0)
        return 1;
    PyObject *done = PyObject_CallFunction(self->failed, "iO", status, known);
    Py_XDECREF(done);
    return done == NULL ? -1 : 1;
}

/* Launches on tensors that were recognized; 1, 0 where nothing is kept for them, or -1. */
static int launch_on(Again *self, PyObject *tensors, PyObject *stream)
{
    PyObject *known = find(self, tensors, stream);
    if (known == NULL)
        return PyErr_Occurred() ? -1 : 0;
    int done = launch_known(self, known);
    Py_DECREF(known);
    return done;
}

static int recognize_and_launch(Again *self, PyObject *tensors, PyObject *stream)
{
    int known = truth_of(PyObject_CallObject(self->recognizes, tensors));
    return known == 1 ? launch_on(self, tensors, stream) : known;
}

/* (input, …, out), a new reference */
static PyObject *with_last(PyObject *inputs, PyObject *out)
{
    Py_ssize_t count = PyTuple_GET_SIZE(inputs);
    PyObject *tensors = PyTuple_New(count + 1);
    if (tensors == NULL)
        return NULL;
    for (Py_ssize_t i = 0; i < count; i++)
        PyTuple_SET_ITEM(tensors, i, Py_NewRef(PyTuple_GET_ITEM(inputs, i)));
    PyTuple_SET_ITEM(tensors, count, Py_NewRef(out));
    return tensors;
}

static int check_call(PyObject *const *given, Py_ssize_t count, Py_ssize_t wanted)
{
    if (count == wanted && PyTuple_CheckExact(given[0]))
        return 1;
    PyErr_Format(PyExc_TypeError, "a tuple and %zd more must be given", wanted - 1);
    return 0;
}

static PyObject *as_bool(int done)
{
    return done < 0 ? NULL : PyBool_FromLong(done);
}

static PyObject *again_launch(Again *self, PyObject *const *given, Py_ssize_t count)
{
    if (!check_call(given, count, 2))
        return NULL;
    return as_bool(recognize_and_launch(self, given[0], given[1]));
}

static PyObject *again_launch_into(Again *self, PyObject *const *given, Py_ssize_t count)
{
    if (!check_call(given, count, 3))
        return NULL;
    PyObject *tensors = with_last(given[0], given[1]);
    if (tensors == NULL)
        return NULL;
    int done = recognize_and_launch(self, tensors, given[2]);
    Py_DECREF(tensors);
    if (done == 1) {
        PyObject *written = PyTuple_Pack(1, given[1]);
        PyObject *counted = written ? PyObject_CallOneArg(self->count_up, written) : NULL;
        done = counted == NULL ? -1 : 1;
        Py_XDECREF(written);
        Py_XDECREF(counted);
    }
    return as_bool(done);
}

static PyObject *again_launch_new(Again *self, PyObject *const *given, Py_ssize_t count)
{
    if (!check_call(given, count, 2))
        return NULL;
    if (self->make == Py_None)
        Py_RETURN_NONE;
    int done = truth_of(PyObject_CallObject(self->recognizes_inputs, given[0]));
    if (done != 1)
        return done < 0 ? NULL : Py_NewRef(Py_None);
    PyObject *out = PyObject_CallNoArgs(self->make);
    if (out == NULL || out == Py_None)
        return out;
    PyObject *tensors = with_last(given[0], out);
    done = tensors == NULL ? -1 : launch_on(self, tensors, given[1]);
    Py_XDECREF(tensors);
    if (done == 1)
        return out;
    Py_DECREF(out);
    return done < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *again_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
    static char *names[] = {"launch", "function", "launches", "failed", "recognizes",
                            "recognizes_inputs", "make", "captures", "stream_of", "index",
                            "workspaces", "count_up", NULL};
    unsigned long long launch, function;
    PyObject *launches, *failed, *recognizes, *recognizes_inputs, *make;
    PyObject *captures, *stream_of, *index, *workspaces, *count_up;
    if (!PyArg_ParseTupleAndKeywords(args, named, "KKO!OOOOOOOOO", names, &launch, &function,
                                     &PyDict_Type, &launches, &failed, &recognizes,
                                     &recognizes_inputs, &make, &captures, &stream_of, &index,
                                     &workspaces, &count_up))
        return NULL;
    Again *self = (Again *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->launch = (LaunchKernel)(uintptr_t)launch;
    self->function = (void *)(uintptr_t)function;
    self->launches = Py_NewRef(launches);
    self->failed = Py_NewRef(failed);
    self->recognizes = Py_NewRef(recognizes);
    self->recognizes_inputs = Py_NewRef(recognizes_inputs);
    self->make = Py_NewRef(make);
    self->captures = Py_NewRef(captures);
    self->stream_of = Py_NewRef(stream_of);
    self->index = Py_NewRef(index);
    self->workspaces = Py_NewRef(workspaces);
    self->count_up = Py_NewRef(count_up);
    return (PyObject *)self;
}

static int again_traverse(Again *self, visitproc visit, void *arg)
{
    Py_VISIT(self->launches);
    Py_VISIT(self->failed);
    Py_VISIT(self->recognizes);
    Py_VISIT(self->recognizes_inputs);
    Py_VISIT(self->make);
    Py_VISIT(self->captures);
    Py_VISIT(self->stream_of);
    Py_VISIT(self->index);
    Py_VISIT(self->workspaces);
    Py_VISIT(self->count_up);
    return 0;
}

static int again_clear(Again *self)
{
    Py_CLEAR(self->launches);
    Py_CLEAR(self->failed);
    Py_CLEAR(self->recognizes);
    Py_CLEAR(self->recognizes_inputs);
    Py_CLEAR(self->make);
    Py_CLEAR(self->captures);
    Py_CLEAR(self->stream_of);
    Py_CLEAR(self->index);
    Py_CLEAR(self->workspaces);
    Py_CLEAR(self->count_up);
    return 0;
}

static void again_dealloc(Again *self)
{
    PyObject_GC_UnTrack(self);
    again_clear(self);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyMethodDef again_methods[] = {
    {"launch", (PyCFunction)(void (*)(void))again_launch, METH_FASTCALL, NULL},
    {"launch_into", (PyCFunction)(void (*)(void))again_launch_into, METH_FASTCALL, NULL},
    {"launch_new", (PyCFunction)(void (*)(void))again_launch_new, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject again_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "tilewright.runtime._again.Again",
    .tp_basicsize = sizeof(Again),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "Launches on tensors like those of an earlier one; again.py says what each method does.",
    .tp_new = again_new,
    .tp_dealloc = (destructor)again_dealloc,
    .tp_traverse = (traverseproc)again_traverse,
    .tp_clear = (inquiry)again_clear,
    .tp_methods = again_methods,
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, .m_name = "_again", .m_doc = "`Again` of again.py in C.", .m_size = -1,
};

PyMODINIT_FUNC PyInit__again(void)
{
    data_ptr = PyUnicode_InternFromString("data_ptr");
    if (data_ptr == NULL || PyType_Ready(&again_type) < 0)
        return NULL;
    PyObject *made = PyModule_Create(&module);
    if (made == NULL)
        return NULL;
    if (PyModule_AddObjectRef(made, "Again", (PyObject *)&again_type) < 0 ||
        PyModule_AddIntConstant(made, "INTERFACE", INTERFACE) < 0) {
        Py_DECREF(made);
        return NULL;
    }
    return made;
}
